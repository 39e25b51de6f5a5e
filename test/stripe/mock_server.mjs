// Somebody else's Stripe on a port of its own, until standard input ends; prints the port.
import { createExpressApp } from "stripe-stateful-mock";

console.info = console.error; // What it says of each request is not the port.
const server = createExpressApp().listen(0, "127.0.0.1", () => {
  process.stdout.write(`${server.address().port}\n`);
});
process.stdin.resume().on("end", () => process.exit(0));
