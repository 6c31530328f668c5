// A socket in front of the server that breaks connections.
import { createServer } from "node:net";
import { join } from "node:path";
import { tmpdir } from "node:os";
import { randomUUID } from "node:crypto";
import { dial } from "../src/socket.js";

/** Makes a socket whose connections lead to another. `onAnswer(connection number)` returning false breaks the connection in place of the answer. */
export async function proxy(to, onAnswer = () => true) {
  const path = join(tmpdir(), `p${randomUUID().slice(0, 8)}.sock`);
  const open = new Set();
  let count = 0;
  const server = createServer((from) => {
    const n = ++count;
    const onward = dial(to);
    open.add(from);
    for (const [a, b] of [[from, onward], [onward, from]]) {
      a.on("error", () => b.destroy());
      a.on("close", () => (open.delete(a), b.destroy()));
    }
    from.pipe(onward);
    onward.on("data", (part) => {
      if (onAnswer(n, part) === false) from.destroy();
      else from.write(part);
    });
  });
  await new Promise((done) => server.listen(path, done));
  return {
    path,
    /** Breaks all connections. */
    cut: () => open.forEach((c) => c.destroy()),
    close: () => (open.forEach((c) => c.destroy()), server.close()),
    get count() {
      return count;
    },
  };
}
