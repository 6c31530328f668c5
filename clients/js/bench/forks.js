// Measures what a fork costs at so many steps: with the storage that comes with a framework, and with this one.
// LINEAGE_STORE=~/.lineage node bench/forks.js [STEPS]...     The store must be served; it gets threads that are deleted again.
import { MemorySaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { HumanMessage } from "@langchain/core/messages";
import { MemorySession } from "@openai/agents-core";
import { readdir, stat } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { connect } from "@lineage-store/client";
import { LineageSaver } from "@lineage-store/client/langgraph";
import { LineageSession } from "@lineage-store/client/openai-agents";

const store = process.env.LINEAGE_STORE;
const client = await connect({ store, runtime: process.env.LINEAGE_RUNTIME });
const forks = 50;

async function journal() {
  const dir = join(store, "journal");
  const sizes = (await readdir(dir)).map(async (name) => (await stat(join(dir, name))).size);
  return (await Promise.all(sizes)).reduce((a, b) => a + b, 0);
}

async function timed(f) {
  const start = performance.now();
  const result = await f();
  return [performance.now() - start, result];
}

/** A state as an agent has it: a document, the last 100 messages, a counter. A message of 200 bytes follows each step until there are 100. */
async function fill(saver, thread_id, steps) {
  const document = "All of this is the same in each step. ".repeat(100);
  const messages = [];
  let at = { configurable: { thread_id, checkpoint_ns: "" } };
  for (let i = 1; i <= steps; i++) {
    if (i <= 100) messages.push(new HumanMessage({ content: `message ${i} `.padEnd(200, "x"), id: `m${i}` }));
    const channel_values = { document, messages: [...messages], i };
    const versions = { ...(i === 1 && { document: 1 }), ...(i <= 100 && { messages: i }), i };
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(i % 16383), channel_values, channel_versions: { document: 1, messages: Math.min(i, 100), i } };
    at = await saver.put(at, checkpoint, { source: "loop", step: i, parents: {} }, versions);
  }
}

const rows = [];
const row = (framework, steps, storage, [ms, bytes]) => rows.push({ framework, steps, storage, ms: Number(ms.toFixed(2)), bytes: Math.round(bytes) });

for (const steps of process.argv.slice(2).map(Number)) {
  const prefix = `bench/${randomUUID()}/`;
  const saver = new LineageSaver(client, { prefix });
  await fill(saver, "t", steps);
  const before = await journal();
  const [took] = await timed(async () => {
    for (let i = 0; i < forks; i++) await saver.copyThread("t", `fork ${i}`);
  });
  row("LangGraph", steps, "LineageSaver", [took / forks, ((await journal()) - before) / forks]);
  for await (const t of client.threads({ source_prefix: prefix })) await client.thread(t.id).delete();

  const memory = new MemorySaver();
  await fill(memory, "t", steps);
  const size = () => Object.values(memory.storage.fork[""]).reduce((n, [checkpoint, metadata]) => n + checkpoint.length + metadata.length, 0);
  const [copied] = await timed(async () => { // it has no copy: each checkpoint is read and put
    const all = [];
    for await (const t of memory.list({ configurable: { thread_id: "t", checkpoint_ns: "" } })) all.push(t);
    for (const t of all.reverse()) {
      await memory.put({ configurable: { ...t.parentConfig?.configurable, thread_id: "fork", checkpoint_ns: "" } }, t.checkpoint, t.metadata, {});
    }
  });
  row("LangGraph", steps, "MemorySaver", [copied, size()]);

  const items = Array.from({ length: steps }, (_, i) => ({ type: "message", role: "user", content: `message ${i} `.padEnd(200, "x") }));
  const session = new LineageSession(client, { sessionId: prefix });
  for (let i = 0; i < steps; i += 1000) await session.addItems(items.slice(i, i + 1000));
  const start = await journal();
  const [forked] = await timed(async () => {
    for (let i = 0; i < forks; i++) await session.fork();
  });
  row("OpenAI Agents", steps, "LineageSession", [forked / forks, ((await journal()) - start) / forks]);
  const whole = new MemorySession({ initialItems: items });
  const [cloned, copy] = await timed(async () => {
    const other = new MemorySession();
    await other.addItems(await whole.getItems());
    return other.getItems();
  });
  row("OpenAI Agents", steps, "MemorySession", [cloned, JSON.stringify(copy).length]);
}
console.table(rows);
client.close();
