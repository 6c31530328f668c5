// Measures what a step and a fork cost at so many steps: with the storage that comes with a framework, and with this one.
// LINEAGE_STORE=~/.lineage node bench/steps.js [STEPS]...     The store must be served; it gets threads that are deleted again.
// SqliteSaver is measured if @langchain/langgraph-checkpoint-sqlite is installed, and deepagents if @deepagents/context is.
import { MemorySaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { HumanMessage } from "@langchain/core/messages";
import { MemorySession } from "@openai/agents-core";
import { mkdtemp, readFile, readdir, rm, stat } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "@lineage-store/client";
import { LineageSaver } from "@lineage-store/client/langgraph";
import { LineageSession } from "@lineage-store/client/openai-agents";

const deepagents = await import("@deepagents/context").catch(() => undefined);

const store = process.env.LINEAGE_STORE;
const client = await connect({ store, runtime: process.env.LINEAGE_RUNTIME });
const forks = 50;

/** How many bytes the journal has: its files are longer, by zeros. */
async function journal() {
  const dir = join(store, "journal");
  let all = 0;
  for (const name of await readdir(dir)) all += (await readFile(join(dir, name))).findLastIndex((b) => b !== 0) + 1;
  return all;
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

/** A fork with a saver that has no copy: each checkpoint is read and put. */
async function putAgain(saver, from, to) {
  const all = [];
  for await (const t of saver.list({ configurable: { thread_id: from, checkpoint_ns: "" } })) all.push(t);
  for (const t of all.reverse()) {
    await saver.put({ configurable: { ...t.parentConfig?.configurable, thread_id: to, checkpoint_ns: "" } }, t.checkpoint, t.metadata, {});
  }
}

const rows = [];

/** Measures steps and forks: size says how many bytes there are. */
async function measure(storage, steps, { size, step, fork, forks = 1 }) {
  const timed = async (f) => {
    const [bytes, start] = [await size(), performance.now()];
    await f();
    const ms = performance.now() - start;
    return [ms, (await size()) - bytes];
  };
  const [ms, bytes] = await timed(step);
  const [forkMs, forkBytes] = await timed(async () => {
    for (let i = 0; i < forks; i++) await fork(i);
  });
  rows.push({ storage, steps, "ms/step": +(ms / steps).toFixed(3), "bytes/step": Math.round(bytes / steps), "ms/fork": +(forkMs / forks).toFixed(2), "bytes/fork": Math.round(forkBytes / forks) });
}

async function sqlite() {
  const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite").catch(() => ({}));
  if (SqliteSaver === undefined) return undefined;
  const dir = await mkdtemp(join(tmpdir(), "steps-"));
  const saver = SqliteSaver.fromConnString(join(dir, "db.sqlite"));
  saver.setup();
  const size = async () => {
    saver.db.pragma("wal_checkpoint(TRUNCATE)");
    return (await stat(join(dir, "db.sqlite"))).size;
  };
  return { saver, size, close: () => (saver.db.close(), rm(dir, { recursive: true })) };
}

/** A step of deepagents is a question and its answer, of 200 bytes each; a fork is a rewind to the middle, which both stores do without a copy. */
async function contexts(steps, prefix) {
  const { LineageContextStore } = await import("@lineage-store/client/deepagents");
  const { ContextEngine, SqliteContextStore, assistantText, user } = deepagents;
  const dir = await mkdtemp(join(tmpdir(), "steps-"));
  const file = join(dir, "db.sqlite");
  const { DatabaseSync } = await import("node:sqlite"); // the package needs it, too
  const files = async () => {
    const db = new DatabaseSync(file);
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    db.close();
    return (await stat(file)).size;
  };
  for (const [name, store, size] of [["SqliteContextStore", new SqliteContextStore(file), files], ["LineageContextStore", new LineageContextStore(client, { prefix }).chat("c"), journal]]) {
    const engine = new ContextEngine({ store, chatId: "c", userId: "ann" });
    const step = async () => {
      for (let i = 0; i < steps; i++) {
        engine.set(user({ id: `q${i}`, role: "user", parts: [{ type: "text", text: `question ${i} `.padEnd(200, "x") }] }), assistantText(`answer ${i} `.padEnd(200, "x"), { id: `a${i}` }));
        await engine.save();
      }
    };
    await measure(name, steps, { size, step, fork: () => engine.rewind(`a${steps >> 1}`), forks });
    await store.deleteChat("c");
  }
  await rm(dir, { recursive: true });
}

for (const steps of process.argv.slice(2).map(Number)) {
  const prefix = `bench/${randomUUID()}/`;
  const memory = new MemorySaver();
  const size = () => Object.values(memory.storage).flatMap((ns) => Object.values(ns[""])).reduce((n, [checkpoint, metadata]) => n + checkpoint.length + metadata.length, 0);
  await measure("MemorySaver", steps, { size, step: () => fill(memory, "t", steps), fork: () => putAgain(memory, "t", "fork") });

  const database = await sqlite();
  if (database !== undefined) {
    await measure("SqliteSaver", steps, { size: database.size, step: () => fill(database.saver, "t", steps), fork: () => putAgain(database.saver, "t", "fork") });
    await database.close();
  }

  const saver = new LineageSaver(client, { prefix });
  await measure("LineageSaver", steps, { size: journal, step: () => fill(saver, "t", steps), fork: (i) => saver.copyThread("t", `fork ${i}`), forks });
  for await (const t of client.threads({ source_prefix: prefix })) await client.thread(t.id).delete();

  const item = (i) => ({ type: "message", role: "user", content: `message ${i} `.padEnd(200, "x") });
  const each = async (session) => {
    for (let i = 0; i < steps; i++) await session.addItems([item(i)]);
  };
  const copies = [];
  const whole = new MemorySession();
  const held = async () => JSON.stringify([await whole.getItems(), ...copies]).length;
  await measure("MemorySession", steps, { size: held, step: () => each(whole), fork: async () => {
    const other = new MemorySession();
    await other.addItems(await whole.getItems());
    copies.push(await other.getItems());
  } });
  const session = new LineageSession(client, { sessionId: prefix });
  await measure("LineageSession", steps, { size: journal, step: () => each(session), fork: () => session.fork(), forks });
  if (deepagents !== undefined) await contexts(steps, prefix);
}
console.table(rows);
client.close();
