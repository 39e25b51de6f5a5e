// Signatures of events as Stripe's own library makes them, as lines for the C test.
//
//     node vectors.mjs          writes ../unit/provider/stripe_vectors.def
//     node vectors.mjs --check  says whether that file is still what the library makes
import { readFileSync, writeFileSync } from "node:fs";
import Stripe from "stripe";

const stripe = new Stripe("sk_test_unused");
const target = new URL("../unit/provider/stripe_vectors.def", import.meta.url);

// What our adapter reads: test/unit/provider/stripe_event.c knows what it says.
const paid = {
  id: "evt_5", object: "event", api_version: "2026-10-28.endive", created: 1764399990,
  livemode: false, type: "payment_intent.succeeded", pending_webhooks: 1,
  request: { id: "req_1", idempotency_key: "c0123456789abcdefghjkmnpqrs-confirm" },
  data: {
    object: {
      id: "pi_1", object: "payment_intent", amount: 10000, amount_capturable: 0,
      amount_received: 10000, capture_method: "automatic", created: 1764399980,
      currency: "eur", status: "succeeded",
      metadata: { idem_id: "c0123456789abcdefghjkmnpqrs", order_no: "o-\u8336" },
    },
  },
};

const rows = [
  ["whsec_one", 1764400000, '{"id":"evt_1","object":"event"}'],
  ["whsec_one", 1, "{}"],
  ["whsec_one", 1764400000, '{"note":"茶 \\u00e9 \\"quoted\\" \\/"}'],
  ["whsec_one", 1764400000, "{\r\n  \"id\": \"evt_2\"\t\n}\n"],
  ["w", 2147483648, '{"id":"evt_3"}'],
  ["whsec_" + "k".repeat(120), 9999999999, '{"id":"evt_4"}'],
  ["whsec_long", 1764400000, '{"data":"' + "x".repeat(3000) + '"}'],
  ["whsec_one", 1764400000, JSON.stringify(paid, null, 2)], // As Stripe prints events.
];

const escape = (text) =>
  [...Buffer.from(text, "utf8")]
    .map((byte) =>
      byte >= 32 && byte < 127 && byte !== 34 && byte !== 92
        ? String.fromCharCode(byte)
        : "\\" + byte.toString(8).padStart(3, "0"),
    )
    .join("");

// At most 100 columns: a literal in pieces.
const literal = (text) => (escape(text).match(/(?:\\\d{3}|[^\\]){1,20}/g) ?? [""])
  .reduce((lines, piece) => {
    const last = lines.length - 1;
    if (lines[last].length + piece.length > 80) return [...lines, piece];
    lines[last] += piece;
    return lines;
  }, [""])
  .map((line) => `    "${line}"`)
  .join("\n");

const lines = rows.map(([secret, timestamp, payload]) => {
  const header = stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp });
  stripe.webhooks.constructEvent(payload, header, secret, 0, undefined, timestamp * 1000);
  return `VECTOR(\n${literal(secret)},\n    ${timestamp}, ${literal(header).trim()},\n` +
    `${literal(payload)})\n`;
});
const text = `/*
 * stripe_vectors.def - signatures that Stripe's own library made: test/stripe/vectors.mjs.
 *
 *     VECTOR(secret, time, Stripe-Signature, body)
 */
${lines.join("")}`;

if (process.argv[2] === "--check") {
  const same = readFileSync(target, "utf8") === text;
  console.log(same ? `ok: ${rows.length} vectors are as checked in` : "not ok: make them anew");
  process.exit(same ? 0 : 1);
}
writeFileSync(target, text);
