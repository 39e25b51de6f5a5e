// What the scripts here share: a simulator of their own, and TAP.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { strict as assert } from "node:assert";

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

// Gives { port, stop }: the simulator on loopback.
export async function simulatorStart() {
  const port = await freePort();
  const path = fileURLToPath(new URL("simulator.py", import.meta.url));
  const child = spawn("python3", [path, String(port)], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve, reject) => {
    child.stdout.once("data", resolve);
    child.once("exit", () => reject(new Error("the simulator has ended")));
  });
  return { port, stop: () => child.kill() };
}

// Runs [[sentence, function], ...] and exits; prints TAP.
export async function run(tests, end) {
  let failed = 0;
  console.log(`1..${tests.length}`);
  for (const [index, [sentence, test]] of tests.entries()) {
    try {
      await test();
      console.log(`ok ${index + 1} - ${sentence}`);
    } catch (error) {
      failed += 1;
      console.log(`not ok ${index + 1} - ${sentence}`);
      console.log(String(error.stack).replace(/^/gm, "# "));
    }
  }
  await end();
  process.exit(failed ? 1 : 0);
}

// The error that `work` fails with.
export async function failure(work) {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return assert.fail("it did not fail");
}

export { assert };
