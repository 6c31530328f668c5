// Measures what a step and a fork cost at so many steps: with the storage that comes with a framework, and with this one.
// LINEAGE_STORE=~/.lineage node bench/steps.js [--of NAME]... [--rounds N] [STEPS]...
// The store must be served; it gets threads that are deleted again. NAME is langgraph, openai-agents, claude-agent, ai or deepagents, which
// is measured if @deepagents/context is installed; SqliteSaver is if @langchain/langgraph-checkpoint-sqlite is. Each round measures
// all; figures are the medians. Processor time is that of this process and, on Linux, of the server.
import { MemorySaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { HumanMessage } from "@langchain/core/messages";
import { MemorySession } from "@openai/agents-core";
import { forkSession } from "@anthropic-ai/claude-agent-sdk";
import { appendFile, mkdir, mkdtemp, readFile, readdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { randomUUID } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { connect } from "@lineage-store/client";
import { LineageSessionStore } from "@lineage-store/client/claude-agent";
import { findServer } from "../src/find.js";
import { LineageSaver } from "@lineage-store/client/langgraph";
import { LineageSession } from "@lineage-store/client/openai-agents";

const deepagents = await import("@deepagents/context").catch(() => undefined);

const { values: { of, rounds }, positionals } = parseArgs({ allowPositionals: true, options: { of: { type: "string", multiple: true }, rounds: { type: "string", default: "1" } } });
const store = process.env.LINEAGE_STORE;
const runtime = process.env.LINEAGE_RUNTIME;
const client = await connect({ store, runtime });
const { pid } = await findServer({ store, runtime });
const forks = 50;

/** The processor time of the server so far, in milliseconds. */
async function serverTime() {
  if (process.platform !== "linux") return 0;
  let all = 0;
  for (const thread of await readdir(`/proc/${pid}/task`)) {
    all += (await readFile(`/proc/${pid}/task/${thread}/schedstat`, "utf8").then((s) => Number(s.split(" ")[0]), () => 0)) / 1e6;
  }
  return all;
}

/** The processor time of this process so far, in milliseconds. */
function ownTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

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

const rows = new Map();

/** Measures steps and forks: size says how many bytes there are, times how many steps are done of those that are counted. */
async function measure(storage, steps, { size, step, fork, forks = 1, times = steps }) {
  const timed = async (f, n) => {
    const [bytes, server, own, start] = [await size(), await serverTime(), ownTime(), performance.now()];
    await f();
    const [ms, mine] = [performance.now() - start, ownTime() - own];
    return { ms: ms / n, cpu: (mine + (await serverTime()) - server) / n, bytes: (await size()) - bytes };
  };
  const each = await timed(step, times);
  const forked = await timed(async () => {
    for (let i = 0; i < forks; i++) await fork(i);
  }, forks);
  const row = { "ms/step": each.ms, "cpu ms/step": each.cpu, "bytes/step": each.bytes / steps, "ms/fork": forked.ms, "cpu ms/fork": forked.cpu, "bytes/fork": forked.bytes / forks };
  const key = JSON.stringify({ storage, steps });
  rows.set(key, [...(rows.get(key) ?? []), row]);
}

const median = (all) => all.sort((a, b) => a - b)[all.length >> 1];

/** The medians of the rounds. */
function table() {
  return [...rows].map(([key, all]) => {
    const row = JSON.parse(key);
    for (const name of Object.keys(all[0])) row[name] = +median(all.map((r) => r[name])).toFixed(name.startsWith("bytes") ? 0 : 3);
    return row;
  });
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
        engine.set(user({ id: `q${i}`, role: "user", parts: [{ type: "text", text: question(i) }] }), assistantText(answer(i), { id: `a${i}` }));
        await engine.save();
      }
    };
    await measure(name, steps, { size, step, fork: () => engine.rewind(`a${steps >> 1}`), forks });
    await store.deleteChat("c");
  }
  await rm(dir, { recursive: true });
}

async function langgraph(steps, prefix) {
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
}

async function openAIAgents(steps, prefix) {
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
  const session = new LineageSession(client, { prefix, sessionId: "s" });
  await measure("LineageSession", steps, { size: journal, step: () => each(session), fork: () => session.fork(), forks });
}

const question = (i) => `question ${i} `.padEnd(200, "x");
const answer = (i) => `answer ${i} `.padEnd(200, "x");

/** How many bytes the files of a folder have. */
const bytesIn = (dir) => async () => {
  let all = 0;
  for (const name of await readdir(dir)) all += (await stat(join(dir, name))).size;
  return all;
};

/**
 * A step of the Claude Agent SDK is a question and its answer, of 200 bytes each, in one append. The agent itself keeps a session in a file, a
 * line for each entry, and so does this here; it does not wait until they are on the disk. A fork is that of the SDK, which gives all entries
 * new ids and appends them; with this store it is also a branch of the thread, which `lineage resume` continues.
 */
async function claudeAgent(steps, prefix) {
  const home = await realpath(await mkdtemp(join(tmpdir(), "steps-")));
  const dir = join(home, "work");
  const project = join(home, "projects", dir.replace(/[^a-zA-Z0-9]/g, "-"));
  await mkdir(project, { recursive: true });
  await mkdir(dir);
  process.env.CLAUDE_CONFIG_DIR = home; // where the SDK looks for files
  const sessionId = randomUUID();
  let last = null;
  const entry = (type, message) => {
    const uuid = randomUUID();
    const is = { parentUuid: last, isSidechain: false, type, message, uuid, timestamp: new Date().toISOString(), userType: "external", cwd: dir, sessionId, version: "2.1.0", gitBranch: "main" };
    last = uuid;
    return is;
  };
  const each = async (append) => {
    last = null;
    for (let i = 0; i < steps; i++) {
      const said = { id: `msg_${i}`, type: "message", role: "assistant", model: "claude-x-1", content: [{ type: "text", text: answer(i) }], stop_reason: "end_turn", usage: { input_tokens: 300, output_tokens: 50 } };
      await append([entry("user", { role: "user", content: question(i) }), entry("assistant", said)]);
    }
  };
  const file = join(project, `${sessionId}.jsonl`);
  const write = (entries) => appendFile(file, entries.map((e) => `${JSON.stringify(e)}\n`).join(""));
  await measure("a file of JSON lines", steps, { size: bytesIn(project), step: () => each(write), fork: () => forkSession(sessionId, { dir }) });
  const sessionStore = new LineageSessionStore(client, { prefix });
  const key = { projectKey: dir.replace(/[^a-zA-Z0-9]/g, "-"), sessionId };
  await measure("LineageSessionStore", steps, { size: journal, step: () => each((entries) => sessionStore.append(key, entries)), fork: () => forkSession(sessionId, { dir, sessionStore }) });
  const [thread] = await Array.fromAsync(client.threads({ source_prefix: `${prefix}${key.projectKey}/${sessionId}` }));
  await measure("LineageSessionStore, a branch", steps, { size: journal, step: () => {}, fork: (i) => client.thread(thread.id).createBranch({ name: `fork ${i}`, from: "main" }), forks });
  await rm(home, { recursive: true });
}

/**
 * A step of the AI SDK is a question and its answer, of 200 bytes each. Its documentation keeps a chat in a file of JSON, which is written as a
 * whole once the answer is there; a fork is that file under another name. Of many steps 100 are done, at equal distances, so that what they
 * cost is the mean. With this store a step is the two requests of the recipe, each with one message; a fork is a branch. Reading the history for
 * the model is a part of neither.
 */
async function aiSDK(steps, prefix) {
  const dir = await mkdtemp(join(tmpdir(), "steps-"));
  const file = (id) => join(dir, `${id}.json`);
  const load = async (id) => JSON.parse(await readFile(file(id), "utf8"));
  const save = (id, messages) => writeFile(file(id), JSON.stringify(messages, null, 2));
  const asked = (i) => ({ id: `question-${i}`.padEnd(16, "x"), role: "user", parts: [{ type: "text", text: question(i) }] });
  const answered = (i) => ({ id: `answer-${i}`.padEnd(16, "x"), role: "assistant", parts: [{ type: "step-start" }, { type: "text", text: answer(i), state: "done" }] });
  const messages = [];
  const every = Math.max(1, steps / 100);
  for (let i = 0; i < steps; i++) messages.push(asked(i), answered(i));
  const whole = async () => {
    for (let i = every; i <= steps; i += every) await save("chat", messages.slice(0, 2 * i));
  };
  await measure("a file of JSON", steps, { size: bytesIn(dir), step: whole, times: steps / every, fork: async () => save("fork", await load("chat")) });
  await rm(dir, { recursive: true });
  await client.createThread({ id: prefix });
  const chat = client.thread(`=${prefix}`);
  const context = chat.context("main");
  const each = async () => {
    for (let i = 0; i < steps; i++) {
      await context.append([asked(i)], { dialect: "ui" });
      await context.append([answered(i)], { dialect: "ui" });
    }
  };
  await measure("the recipe", steps, { size: journal, step: each, fork: (i) => chat.createBranch({ name: `fork ${i}`, from: "main" }), forks });
}

const frameworks = { langgraph, "openai-agents": openAIAgents, "claude-agent": claudeAgent, ai: aiSDK, ...(deepagents !== undefined && { deepagents: contexts }) };

for (let round = 0; round < Number(rounds); round++) {
  for (const steps of positionals.map(Number)) {
    for (const name of of ?? Object.keys(frameworks)) {
      const prefix = `bench/${randomUUID()}/`;
      await frameworks[name](steps, prefix);
      for await (const t of client.threads({ source_prefix: prefix })) await client.thread(t.id).delete();
    }
  }
}
console.table(table());
client.close();
