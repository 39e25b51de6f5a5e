// The simulator, driven by Stripe's own library: does it speak the protocol?
//
// Goal: what fault.py rests on is Stripe as its library knows it: forms, objects, errors by class,
// replays and lists. Method: one simulator, the library with its retries off, and the simulator's
// ledger for what was executed.
import Stripe from "stripe";
import { assert, failure, run, simulatorStart } from "./world.mjs";

const simulator = await simulatorStart();
const stripe = new Stripe("sk_test_sdk", {
  host: "127.0.0.1",
  port: simulator.port,
  protocol: "http",
  maxNetworkRetries: 0,
  telemetry: false,
});

const create = (order, more = {}, key) =>
  stripe.paymentIntents.create(
    {
      amount: 10000,
      currency: "eur",
      payment_method: "pm_card_visa",
      automatic_payment_methods: { enabled: true, allow_redirects: "never" },
      metadata: { order_no: order, idem_id: order },
      ...more,
    },
    key && { idempotencyKey: key },
  );

const told = async (order) =>
  (await (await fetch(`http://127.0.0.1:${simulator.port}/ledger`)).json())[order];

await run(
  [
    ["create, confirm, retrieve", async () => {
      const made = await create("plain");
      assert.equal(made.status, "requires_confirmation");
      assert.deepEqual({ ...made.automatic_payment_methods },
                       { enabled: "true", allow_redirects: "never" });
      const paid = await stripe.paymentIntents.confirm(made.id);
      assert.equal(paid.status, "succeeded");
      assert.equal(paid.amount_received, 10000);
      assert.equal((await stripe.paymentIntents.retrieve(made.id)).metadata.order_no, "plain");
    }],
    ["a capture in part, and nothing after it", async () => {
      const made = await create("part", { capture_method: "manual", confirm: true });
      assert.equal(made.status, "requires_capture");
      assert.equal(made.amount_capturable, 10000);
      const taken = await stripe.paymentIntents.capture(made.id, { amount_to_capture: 6000 });
      assert.equal(taken.amount_received, 6000);
      const error = await failure(() => stripe.paymentIntents.capture(made.id));
      assert.ok(error instanceof Stripe.errors.StripeInvalidRequestError);
      assert.equal(error.code, "payment_intent_unexpected_state");
    }],
    ["a cancel, and a cancel of what is paid", async () => {
      const made = await create("void", { capture_method: "manual", confirm: true });
      assert.equal((await stripe.paymentIntents.cancel(made.id)).status, "canceled");
      const paid = await create("paid", { confirm: true });
      const error = await failure(() => stripe.paymentIntents.cancel(paid.id));
      assert.ok(error instanceof Stripe.errors.StripeInvalidRequestError);
    }],
    ["a declined card leaves an intent that can be paid", async () => {
      const made = await create("declined", { payment_method: "pm_card_chargeDeclined" });
      const error = await failure(() => stripe.paymentIntents.confirm(made.id));
      assert.ok(error instanceof Stripe.errors.StripeCardError);
      assert.equal(error.statusCode, 402);
      assert.equal(error.decline_code, "generic_decline");
      assert.equal(error.payment_intent.status, "requires_payment_method");
    }],
    ["refunds in part, no more than was paid, by payment in a list", async () => {
      const paid = await create("refunded", { confirm: true });
      const one = await stripe.refunds.create({ payment_intent: paid.id, amount: 4000 });
      assert.equal(one.status, "succeeded");
      await stripe.refunds.create({ payment_intent: paid.id });
      const error = await failure(() => stripe.refunds.create({ payment_intent: paid.id }));
      assert.equal(error.code, "charge_already_refunded");
      const list = await stripe.refunds.list({ payment_intent: paid.id });
      assert.deepEqual(list.data.map((refund) => refund.amount), [6000, 4000]);
      assert.equal((await stripe.refunds.retrieve(one.id)).amount, 4000);
    }],
    ["a key is executed once and replayed", async () => {
      const first = await create("twice", { confirm: true }, "key-twice");
      const again = await create("twice", { confirm: true }, "key-twice");
      assert.equal(again.id, first.id);
      assert.equal(first.lastResponse.headers["idempotent-replayed"], undefined);
      assert.equal(again.lastResponse.headers["idempotent-replayed"], "true");
      assert.deepEqual((await told("twice")).create, [2, 1]);
    }],
    ["a key with other parameters is refused", async () => {
      await create("other", {}, "key-other");
      const error = await failure(() => create("other", { amount: 1 }, "key-other"));
      assert.ok(error instanceof Stripe.errors.StripeIdempotencyError);
      assert.equal(error.statusCode, 400);
    }],
    ["a decline and a 500 are replayed as well", async () => {
      const made = await create("sticky", { payment_method: "pm_card_chargeDeclined" });
      const twice = { idempotencyKey: "key-sticky" };
      const first = await failure(() => stripe.paymentIntents.confirm(made.id, {}, twice));
      const again = await failure(() => stripe.paymentIntents.confirm(made.id, {}, twice));
      assert.equal(again.headers["idempotent-replayed"], "true");
      assert.equal(again.message, first.message);
      for (let i = 0; i < 2; i += 1) {
        const error = await failure(() => create("create.executed-500.1", {}, "key-500"));
        assert.ok(error instanceof Stripe.errors.StripeAPIError);
      }
      assert.deepEqual((await told("create.executed-500.1")).create, [2, 1]);
    }],
    ["409, 429 and 401 are errors of their own, and not remembered", async () => {
      const order = "create.in-use.1";
      const busy = await failure(() => create(order, {}, "key-busy"));
      assert.equal(busy.statusCode, 409);
      assert.equal((await create(order, {}, "key-busy")).object, "payment_intent");
      const limited = await failure(() => create("create.limited.1", {}, "key-limited"));
      assert.ok(limited instanceof Stripe.errors.StripeRateLimitError);
      assert.equal((await create("create.limited.1", {}, "key-limited")).object, "payment_intent");
      const nobody = new Stripe("pk_none", { host: "127.0.0.1", port: simulator.port,
                                             protocol: "http", maxNetworkRetries: 0 });
      const refused = await failure(() => nobody.paymentIntents.list());
      assert.ok(refused instanceof Stripe.errors.StripeAuthenticationError);
    }],
    ["a lost request and a lost answer look the same", async () => {
      for (const [fault, executions] of [["lost-request", 0], ["lost-answer", 1]]) {
        const order = `create.${fault}.sdk`;
        const agent = new Stripe("sk_test_sdk", {
          host: "127.0.0.1", port: simulator.port, protocol: "http", maxNetworkRetries: 0,
          httpClient: Stripe.createFetchHttpClient(),
        });
        const form = { amount: 1, currency: "eur", metadata: { order_no: order } };
        const error = await failure(() => agent.paymentIntents.create(form));
        assert.ok(error instanceof Stripe.errors.StripeConnectionError);
        assert.equal((await told(order)).create[1], executions);
      }
    }],
    ["lists lead from page to page, newest first", async () => {
      for (let i = 0; i < 7; i += 1) {
        await create(`page-${i}`);
      }
      const seen = [];
      for await (const intent of stripe.paymentIntents.list({ limit: 3 })) {
        seen.push(intent.id);
      }
      assert.ok(seen.length >= 7);
      assert.deepEqual(seen, [...seen].sort().reverse());
      assert.equal(new Set(seen).size, seen.length);
      const future = Math.floor(Date.now() / 1000) + 1000;
      assert.equal((await stripe.paymentIntents.list({ created: { gte: future } })).data.length, 0);
    }],
    ["a search by metadata finds one", async () => {
      const found = await stripe.paymentIntents.search({ query: "metadata['idem_id']:'plain'" });
      assert.equal(found.data.length, 1);
      assert.equal(found.data[0].metadata.order_no, "plain");
    }],
  ],
  simulator.stop,
);
