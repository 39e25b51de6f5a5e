// Whether the libraries of merchants verify what a service has posted: deliver.py --save DIR wrote
// each request, and the secrets that it must verify with.
//
//     node verify.mjs DIR
//
// Each library must take each post under each of its secrets, and must not take it with one byte
// changed in its body, with another id or time, without its signature, or under another secret.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";

const libraries = { standardwebhooks: StandardWebhook, svix: SvixWebhook };
const stranger = "whsec_" + Buffer.alloc(32, 7).toString("base64");
let checks = 0;

const takes = (library, secret, body, headers) => {
  checks += 1;
  try {
    return { message: new library(secret).verify(body, headers) };
  } catch {
    return null;
  }
};

const expect = (condition, what) => {
  if (!condition) {
    console.log(`not ok: ${what}`);
    process.exit(1);
  }
};

const changed = (body) => {
  const other = Buffer.from(body);
  other[other.length - 2] ^= 1;
  return other;
};

const names = readdirSync(process.argv[2]).filter((name) => name.endsWith(".json"));
expect(names.length > 0, "there are posts");
let doubly = 0;
for (const name of names) {
  const { headers, body: text, secrets } = JSON.parse(readFileSync(join(process.argv[2], name)));
  const body = Buffer.from(text, "base64");
  doubly += secrets.length > 1 ? 1 : 0;
  const later = String(Number(headers["webhook-timestamp"]) + 1);
  const forgeries = [
    ["a changed body", changed(body), headers],
    ["another id", body, { ...headers, "webhook-id": headers["webhook-id"] + "0" }],
    ["another time", body, { ...headers, "webhook-timestamp": later }],
    ["no signature", body, { ...headers, "webhook-signature": "" }],
  ];
  for (const [library, kind] of Object.entries(libraries)) {
    for (const secret of secrets) {
      const taken = takes(kind, secret, body, headers);
      expect(taken !== null, `${library} takes ${name}`);
      expect(taken.message.type === JSON.parse(body).type, `${library} reads ${name}`);
      for (const [what, bytes, head] of forgeries) {
        expect(takes(kind, secret, bytes, head) === null, `${library}: ${what}, ${name}`);
      }
    }
    expect(takes(kind, stranger, body, headers) === null, `${library}: a stranger's, ${name}`);
  }
}
expect(doubly > 0, "there is a post with two signatures");
console.log(`ok: ${names.length} posts, ${doubly} of them during a rotation, ${checks} checks`);
