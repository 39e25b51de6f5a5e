// The simulator's memory of idempotency keys, beside somebody else's: stripe-stateful-mock.
//
// Goal: same key, other parameters, a decline: the simulator remembers and replays what the mock
// does. The mock knows charges and refunds, the simulator payment intents and refunds, so the same
// course is run with each one's words. Method: status, kind of error and replay header of each
// step, compared; and how many objects there are.
import { createExpressApp } from "stripe-stateful-mock";
import { assert, run, simulatorStart } from "./world.mjs";

const simulator = await simulatorStart();
const mock = await new Promise((resolve) => {
  const server = createExpressApp().listen(0, "127.0.0.1", () => resolve(server));
});
const places = {
  mock: {
    port: mock.address().port,
    pay: "charges",
    form: (source, amount) => ({ amount, currency: "usd", source }),
    cards: { good: "tok_visa", bad: "tok_chargeDeclined" },
    about: (payment) => ({ charge: payment.id }),
  },
  simulator: {
    port: simulator.port,
    pay: "payment_intents",
    form: (source, amount) => ({ amount, currency: "usd", payment_method: source, confirm: true }),
    cards: { good: "pm_card_visa", bad: "pm_card_chargeDeclined" },
    about: (payment) => ({ payment_intent: payment.id }),
  },
};

async function post(place, path, form, key) {
  const answer = await fetch(`http://127.0.0.1:${place.port}/v1/${path}`, {
    method: "POST",
    headers: { Authorization: "Bearer sk_test_mock", "Idempotency-Key": key,
               "Content-Type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams(form),
  });
  const body = await answer.json();
  const kind = body.error?.type ?? body.object.replace(/charge|payment_intent/, "paid");
  const replayed = answer.headers.get("idempotent-replayed") === "true";
  return { body, told: `${answer.status} ${kind} ${replayed ? "replayed" : "new"}` };
}

const courses = [
  ["a payment is made once under its key", async (place) => {
    const form = place.form(place.cards.good, 700);
    const answers = [];
    for (let i = 0; i < 3; i += 1) {
      answers.push(await post(place, place.pay, form, "one"));
    }
    const ids = new Set(answers.map((answer) => answer.body.id));
    return [...answers.map((answer) => answer.told), `${ids.size} id`];
  }],
  ["four at the same time are one payment", async (place) => {
    const form = place.form(place.cards.good, 800);
    const answers = await Promise.all([1, 2, 3, 4].map(() => post(place, place.pay, form, "four")));
    const paid = answers.filter((answer) => answer.body.id);
    return [`${new Set(paid.map((answer) => answer.body.id)).size} id`];
  }],
  ["other parameters under the key are refused", async (place) => {
    const answers = [];
    answers.push(await post(place, place.pay, place.form(place.cards.good, 900), "other"));
    answers.push(await post(place, place.pay, place.form(place.cards.good, 901), "other"));
    return answers.map((answer) => answer.told);
  }],
  ["a decline is remembered", async (place) => {
    const answers = [];
    for (let i = 0; i < 2; i += 1) {
      answers.push(await post(place, place.pay, place.form(place.cards.bad, 900), "declined"));
    }
    return answers.map((answer) => answer.told);
  }],
  ["a refund is made once under its key, and never too much", async (place) => {
    const paid = await post(place, place.pay, place.form(place.cards.good, 1000), "to-refund");
    const about = { ...place.about(paid.body), amount: 600 };
    const answers = [];
    answers.push(await post(place, "refunds", about, "refund"));
    answers.push(await post(place, "refunds", about, "refund"));
    answers.push(await post(place, "refunds", about, "refund-2"));
    const ids = new Set(answers.slice(0, 2).map((answer) => answer.body.id));
    return [...answers.map((answer) => answer.told), `${ids.size} id`];
  }],
];

await run(
  courses.map(([sentence, course]) => [sentence, async () => {
    assert.deepEqual(await course(places.simulator), await course(places.mock));
  }]),
  () => {
    simulator.stop();
    mock.close();
  },
);
