// Signatures of posts as the libraries of Standard Webhooks and Svix make them, as lines for the C
// test. Both must make the same ones; the derivation of the secrets is repeated here from its
// description (src/outbox/secret.c) with Node's own HMAC.
//
//     node vectors.mjs          writes ../unit/outbox/webhook_vectors.def
//     node vectors.mjs --check  says whether that file is still what the libraries make
import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";

const target = new URL("../unit/outbox/webhook_vectors.def", import.meta.url);
const webhook = "0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
const message = "0193a1b2-ffff-7000-8000-000000000001";

// Effect secret, webhook, generation, whether a rotation's overlap lasts, message, seconds, body.
const rows = [
  ["e".repeat(32), webhook, 1, false, message, 1764400000, '{"type":"webhook.test"}'],
  ["e".repeat(32), webhook, 2, false, message, 1764400000, '{"type":"webhook.test"}'],
  ["e".repeat(32), webhook, 2, true, message, 1764400000, '{"type":"webhook.test"}'],
  ["e".repeat(32), webhook, 4294967295, true, message, 1, "{}"],
  ["f".repeat(200), webhook, 1, false, webhook, 9999999999, '{"note":"茶 \\u00e9 \\"quoted\\""}'],
  ["e".repeat(32), message, 10, true, webhook, 2147483648, '{"data":"' + "x".repeat(3000) + '"}'],
];

const secretOf = (effect, id, generation) =>
  "whsec_" +
  createHmac("sha256", effect).update(`idem webhook 1\n${id}\n${generation}`).digest("base64");

const sign = (secret, id, seconds, body) => {
  const at = new Date(seconds * 1000);
  const both = [StandardWebhook, SvixWebhook].map((kind) => new kind(secret).sign(id, at, body));
  if (both[0] !== both[1]) throw new Error(`the libraries differ: ${both}`);
  return both[0];
};

const escape = (text) =>
  [...Buffer.from(text, "utf8")]
    .map((byte) =>
      byte >= 32 && byte < 127 && byte !== 34 && byte !== 92
        ? String.fromCharCode(byte)
        : "\\" + byte.toString(8).padStart(3, "0"),
    )
    .join("");

// At most 100 columns: a literal in pieces.
const literal = (text) =>
  (escape(text).match(/(?:\\\d{3}|[^\\]){1,20}/g) ?? [""])
    .reduce((lines, piece) => {
      const last = lines.length - 1;
      if (lines[last].length + piece.length > 80) return [...lines, piece];
      lines[last] += piece;
      return lines;
    }, [""])
    .map((line) => `    "${line}"`)
    .join("\n");

const lines = rows.map(([effect, id, generation, overlap, about, seconds, body]) => {
  const secret = secretOf(effect, id, generation);
  const signatures = [sign(secret, `msg_${about}`, seconds, body)];
  if (overlap) {
    signatures.push(sign(secretOf(effect, id, generation - 1), `msg_${about}`, seconds, body));
  }
  return `VECTOR(\n${literal(effect)},\n    "${id}", ${generation}U, ${overlap},\n` +
    `    "${about}", ${seconds},\n${literal(secret)},\n${literal(signatures.join(" "))},\n` +
    `${literal(body)})\n`;
});
const text = `/*
 * webhook_vectors.def - what the libraries of merchants sign with: test/webhooks/vectors.mjs.
 *
 *     VECTOR(effect secret, webhook, generation, overlap,
 *            message, seconds, secret, signatures, body)
 */
${lines.join("")}`;

if (process.argv[2] === "--check") {
  const same = readFileSync(target, "utf8") === text;
  console.log(same ? `ok: ${rows.length} vectors are as checked in` : "not ok: make them anew");
  process.exit(same ? 0 : 1);
}
writeFileSync(target, text);
