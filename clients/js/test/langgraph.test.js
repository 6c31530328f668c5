import { AIMessage, HumanMessage, RemoveMessage } from "@langchain/core/messages";
import { Annotation, Command, END, MessagesAnnotation, START, StateGraph, interrupt } from "@langchain/langgraph";
import { DeltaSnapshot, MemorySaver, emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { randomUUID } from "node:crypto";
import { LineageSaver } from "@lineage-store/client/langgraph";
import { client, collect, other, random, written } from "./client.js";

const newPrefix = () => `${randomUUID()}/`;
const config = (thread_id, checkpoint_id, checkpoint_ns = "") => ({ configurable: { thread_id, checkpoint_ns, checkpoint_id } });
const loop = { source: "loop", step: 0, parents: {} };

/** What is comparable of a tuple. */
const plain = (tuple) => tuple && { ...tuple, config: { configurable: { ...tuple.config.configurable } } };

// Whatever savers of two processes are asked in turns, they answer as MemorySaver does.
it.each([1, 2, 3, 4, 5, 6])("answers as MemorySaver does, seed %i", async (seed) => {
  const n = random(seed);
  const prefix = newPrefix();
  const savers = [new LineageSaver(client, { prefix }), new LineageSaver(other, { prefix })];
  const memory = new MemorySaver();
  const threads = ["t", "t/2", "%2F~:@{1}"];
  const namespaces = ["", "a|b:1", "é/~2"];
  const put = []; // {config, checkpoint}
  let clock = 0;
  const id = () => uuid6(clock++ % 16383);
  const texts = ["", "a", "b".repeat(70), "\u0000\u001b[31m", "line\nline", "𐀀\ud800"];
  const element = () => [new HumanMessage({ content: texts[n(6)], id: `m${n(9)}` }), { k: n(3) }, texts[n(6)], null, undefined, new Map([["k", 1]]), n(5)][n(7)];
  const next = (was, channel) => {
    if (channel === "plain") return [n(3), texts[n(6)], { __proto__: null, a: [n(2)] }, new Uint8Array([n(256), 1]), null, undefined, new Error("e")][n(7)];
    const list = Array.isArray(was) ? [...was] : [];
    switch (n(8)) {
      case 0: return [];
      case 1: return list.slice(0, n(list.length + 1));
      case 2: if (list.length > 0) list[n(list.length)] = element(); return list;
      case 3: return list.slice(1);
      default: return [...list, ...Array.from({ length: 1 + n(4) }, element)];
    }
  };
  for (let step = 0; step < 60; step++) {
    const thread = threads[n(3)];
    const ns = namespaces[n(3)];
    const saver = savers[n(2)];
    const here = put.filter((p) => p.config.configurable.thread_id === thread && p.config.configurable.checkpoint_ns === ns);
    const parent = here.length === 0 || n(20) === 0 ? undefined : n(4) > 0 ? here.at(-1) : here[n(here.length)];
    switch (n(10)) {
      case 0: case 1: case 2: { // writes, sometimes for a checkpoint that comes later
        const at = parent?.config ?? config(thread, id(), ns);
        const writes = Array.from({ length: n(3) }, () => [["x", "messages", "__error__", "__interrupt__"][n(4)], element()]);
        const args = [at, writes, `task${n(3)}`, n(2) === 0 ? `path${n(3)}` : undefined];
        await Promise.all([saver.putWrites(...args), memory.putWrites(...args)]);
        break;
      }
      case 3: if (n(6) === 0) {
        await Promise.all([saver.deleteThread(thread), memory.deleteThread(thread)]);
        for (let i = put.length - 1; i >= 0; i--) if (put[i].config.configurable.thread_id === thread) put.splice(i, 1);
        break;
      } // falls through
      default: {
        const was = parent?.checkpoint;
        const channel_values = { ...was?.channel_values };
        const channel_versions = { ...was?.channel_versions };
        const versions = {};
        for (const channel of ["messages", "docs", "plain", "__proto__x"]) {
          if (n(3) === 0 && was !== undefined) continue;
          channel_values[channel] = next(channel_values[channel], channel);
          channel_versions[channel] = versions[channel] = (channel_versions[channel] ?? 0) + 1;
        }
        const again = parent !== undefined && n(12) === 0;
        const checkpoint = { ...emptyCheckpoint(), id: again ? parent.checkpoint.id : id(), channel_values, channel_versions };
        const metadata = { ...loop, step, even: step % 2 === 0 };
        const at = again ? config(thread, undefined, ns) : (parent?.config ?? config(thread, undefined, ns));
        if (again) for (const channel of Object.keys(channel_values)) versions[channel] = channel_versions[channel];
        const [ours] = await Promise.all([saver.put(at, checkpoint, metadata, versions), memory.put(at, checkpoint, metadata)]);
        put.push({ config: ours, checkpoint });
      }
    }
    const ask = n(3) === 0 ? config(thread, undefined, ns) : (put[n(put.length || 1)]?.config ?? config(thread, id(), ns));
    // A thread of which only writes were made is none.
    const expected = await memory.getTuple(ask).catch((err) => (put.length === 0 ? undefined : Promise.reject(err)));
    for (const s of savers) expect(plain(await s.getTuple(ask)), `step ${step}`).toEqual(plain(expected));
    if (step % 10 === 9) {
      const before = n(2) === 0 ? put[n(put.length || 1)]?.config : undefined;
      const of = { configurable: [{ thread_id: thread }, { thread_id: thread, checkpoint_ns: ns }, {}][n(3)] };
      const options = { before, filter: n(3) === 0 ? { even: true } : undefined };
      const byPlace = (all) => all.map(plain).sort((a, b) => (JSON.stringify(a.config) < JSON.stringify(b.config) ? -1 : 1));
      expect(byPlace(await collect(saver.list(of, options)))).toEqual(byPlace(await collect(memory.list(of, options))));
      if (of.configurable.checkpoint_ns !== undefined) {
        const limited = { ...options, limit: n(4) };
        expect((await collect(saver.list(of, limited))).map(plain)).toEqual((await collect(memory.list(of, limited))).map(plain));
      }
    }
  }
});

/** Runs a graph with messages, an interrupt, an edit of the past and removed messages; returns what can be seen of its states. */
async function play(checkpointer, thread_id) {
  let count = 0;
  const message = (content, Kind = AIMessage) => new Kind({ content, id: `m${++count}` });
  const graph = new StateGraph(Annotation.Root({ ...MessagesAnnotation.spec, notes: Annotation({ reducer: (a, b) => [...a, ...b], default: () => [] }) }))
    .addNode("answer", (state) => ({ messages: [message(`answer to ${state.messages.at(-1).content}`)], notes: [state.messages.length] }))
    .addNode("review", (state) => ({ messages: [message(`reviewed: ${interrupt("fine?")}`)], notes: [state.messages.length] }))
    .addEdge(START, "answer").addEdge("answer", "review").addEdge("review", END)
    .compile({ checkpointer });
  const at = { configurable: { thread_id } };
  await graph.invoke({ messages: [message("hello", HumanMessage)] }, at);
  await graph.invoke(new Command({ resume: "yes" }), at);
  await graph.invoke({ messages: [message("more", HumanMessage)] }, at);
  await graph.invoke(new Command({ resume: "no" }), at);
  const history = await collect(graph.getStateHistory(at));
  // Go back and go on from there, twice; then change the past.
  for (const back of [3, 5]) {
    const from = await graph.updateState(history[back].config, { messages: [message(`instead ${back}`, HumanMessage)] });
    await graph.invoke(null, from);
  }
  await graph.updateState(at, { messages: [new RemoveMessage({ id: "m2" })] });
  return (await collect(graph.getStateHistory(at))).map((s) => ({
    messages: (s.values.messages ?? []).map((m) => [m.getType(), m.content]), notes: s.values.notes, next: s.next, step: s.metadata.step, tasks: s.tasks.map((t) => [t.name, t.interrupts]),
  }));
}

it("runs a graph as MemorySaver does", async () => {
  const saver = new LineageSaver(client, { prefix: newPrefix() });
  const strip = (states) => JSON.parse(JSON.stringify(states).replaceAll(/"(id|interrupt_id)":"[0-9a-f]{32}"/g, '"$1":""'));
  expect(strip(await play(saver, "t"))).toEqual(strip(await play(new MemorySaver(), "t")));
});

it("keeps messages as messages", async () => {
  const prefix = newPrefix();
  await play(new LineageSaver(client, { prefix }), "t");
  const shown = await collect(client.thread(`=${prefix}t`).context("main").messages());
  expect(shown.map((m) => [m.role, m.text]).slice(0, 3)).toEqual([["user", "hello"], ["assistant", "answer to hello"], ["assistant", "reviewed: yes"]]);
});

/** Puts n checkpoints, each with one more message and the same document. */
async function fill(saver, thread, n, document = "") {
  let at = config(thread);
  const messages = [];
  for (let i = 1; i <= n; i++) {
    messages.push(new HumanMessage({ content: `message ${i}`, id: `m${i}` }));
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(i % 16383), channel_values: { messages: [...messages], document, i }, channel_versions: { messages: i, document: 1, i } };
    at = await saver.put(at, checkpoint, { ...loop, step: i }, i === 1 ? { messages: i, document: 1, i } : { messages: i, i });
    await saver.putWrites(at, [["i", i]], "task");
  }
  return at;
}

it("a copy shares what was, goes its own way, and outlives its source", async () => {
  const prefix = newPrefix();
  const saver = new LineageSaver(client, { prefix });
  const at = await fill(saver, "a", 60);
  await saver.put(config("a", undefined, "sub"), { ...emptyCheckpoint(), id: uuid6(0) }, loop, {});
  await saver.copyThread("a", "b");
  const strip = (all) => JSON.parse(JSON.stringify(all).replaceAll(/"thread_id":"[ab]"/g, '"thread_id":""'));
  const [a, b] = await Promise.all(["a", "b"].map((id) => collect(saver.list({ configurable: { thread_id: id } }))));
  expect(b).toHaveLength(61);
  expect(JSON.stringify(strip(b))).toBe(JSON.stringify(strip(a)));
  // Both go on from the same checkpoint.
  for (const thread of ["a", "b"]) {
    const was = await saver.getTuple(config(thread));
    const messages = [...was.checkpoint.channel_values.messages, new AIMessage(`for ${thread}`)];
    await saver.put(was.config, { ...was.checkpoint, id: uuid6(1), channel_values: { messages } }, loop, { messages: 61 });
  }
  const last = async (s, thread) => (await s.getTuple(config(thread))).checkpoint.channel_values.messages.at(-1).content;
  expect(await last(saver, "a")).toBe("for a");
  expect(await last(saver, "b")).toBe("for b");
  await saver.deleteThread("a");
  expect(await saver.getTuple(at)).toBeUndefined();
  for (const s of [saver, new LineageSaver(other, { prefix })]) {
    expect(await last(s, "b")).toBe("for b");
    expect(await collect(s.list({ configurable: { thread_id: "b" } }))).toHaveLength(62);
    expect((await s.getTuple(config("b", at.configurable.checkpoint_id))).checkpoint.channel_values.messages).toHaveLength(60);
  }
  await expect(saver.copyThread("a", "c")).rejects.toMatchObject({ type: "not-found" });
  await expect(saver.copyThread("b", "b")).rejects.toMatchObject({ type: "exists" });
});

it("several processes write one thread", async () => {
  const prefix = newPrefix();
  const savers = [client, other, client, other].map((c) => new LineageSaver(c, { prefix }));
  const ids = await Promise.all(savers.map(async (saver, s) => {
    const mine = [];
    let at = config("t");
    for (let i = 0; i < 8; i++) {
      const messages = Array.from({ length: i + 1 }, (_, k) => `saver ${s} message ${k}`);
      at = await saver.put(at, { ...emptyCheckpoint(), id: uuid6(i), channel_values: { messages } }, { ...loop, step: i }, { messages: i });
      await saver.putWrites(at, [["x", s]], `task ${s}`);
      mine.push([at, messages]);
    }
    return mine;
  }));
  const fresh = new LineageSaver(client, { prefix });
  for (const [at, messages] of ids.flat()) {
    const tuple = await fresh.getTuple(at);
    expect(tuple.checkpoint.channel_values.messages).toEqual(messages);
    expect(tuple.pendingWrites).toHaveLength(1);
  }
  expect(await collect(fresh.list(config("t")))).toHaveLength(32);
});

it("prunes all but what is needed", async () => {
  const prefix = newPrefix();
  const saver = new LineageSaver(client, { prefix });
  const stale = new LineageSaver(other, { prefix });
  const at = await fill(saver, "t", 20, "document");
  const sub = config("t", undefined, "sub");
  const c0 = await saver.put(sub, { ...emptyCheckpoint(), id: uuid6(0), channel_values: { d: new DeltaSnapshot([0]) }, channel_versions: { d: 1 } }, loop, { d: 1 });
  await saver.putWrites(c0, [["d", [1]]], "task");
  const c1 = await saver.put(c0, { ...emptyCheckpoint(), id: uuid6(1), channel_versions: { d: 2 } }, loop, { d: 2 });
  const before = await Promise.all([stale.getTuple(at), stale.getTuple(c1), stale.getDeltaChannelHistory({ config: c1, channels: ["d"] })]);
  await saver.copyThread("t", "copy");
  await saver.prune(["t", "none"]);
  for (const s of [saver, stale]) {
    expect(await Promise.all([s.getTuple(at), s.getTuple(c1), s.getDeltaChannelHistory({ config: c1, channels: ["d"] })])).toEqual(before);
    expect(await collect(s.list(config("t")))).toHaveLength(1);
    expect(await collect(s.list(sub))).toHaveLength(2);
    expect(await collect(s.list(config("copy")))).toHaveLength(20);
  }
  await fill(stale, "t", 3);
  expect(await collect(saver.list(config("t")))).toHaveLength(4);
  await saver.prune(["t"], { strategy: "delete" });
  expect(await collect(stale.list({ configurable: { thread_id: "t" } }))).toHaveLength(0);
  await expect(saver.prune(["t"], { strategy: "all" })).rejects.toThrow("strategy");
});

it("finds any of many checkpoints with few requests", async () => {
  const prefix = newPrefix();
  const saver = new LineageSaver(client, { prefix });
  await fill(saver, "t", 200);
  const all = await collect(saver.list(config("t")));
  expect(all).toHaveLength(200);
  let requests = 0;
  const { send } = Object.getPrototypeOf(client);
  const counting = Object.assign(Object.create(other), { send: (...args) => (requests++, send.apply(other, args)) });
  const fresh = new LineageSaver(counting, { prefix });
  const at = all[150].config;
  expect(await fresh.getTuple(at)).toEqual(all[150]);
  expect(requests).toBeLessThan(20);
  expect(await fresh.getTuple(config("t", uuid6(0)))).toBeUndefined();
});

it("takes at most twice what is different in the steps, and a fork nothing of it", async () => {
  const saver = new LineageSaver(client, { prefix: newPrefix() });
  const document = Array.from({ length: 3000 }, () => randomUUID()).join(" "); // is the same in each step
  let different = document.length;
  let at = config("t");
  const messages = [];
  const before = await written();
  for (let i = 1; i <= 100; i++) {
    messages.push(new HumanMessage({ content: randomUUID().repeat(5), id: `m${i}` }));
    const checkpoint = { ...emptyCheckpoint(), id: uuid6(i), channel_versions: { messages: i, document: 1, i } };
    different += [messages.at(-1), { ...checkpoint, channel_values: { i } }, { ...loop, step: i }].reduce((n, part) => n + JSON.stringify(part).length, 0);
    const channel_values = { messages: [...messages], document, i };
    at = await saver.put(at, { ...checkpoint, channel_values }, { ...loop, step: i }, i === 1 ? { messages: i, document: 1, i } : { messages: i, i });
  }
  const stored = (await written()) - before;
  expect(stored).toBeGreaterThan(document.length);
  expect(stored).toBeLessThanOrEqual(2 * different);
  const copied = await written();
  for (let i = 0; i < 10; i++) await saver.copyThread("t", `copy ${i}`);
  expect((await written()) - copied).toBeLessThan(10 * 4096);
  expect(await saver.getTuple(config("copy 9"))).toMatchObject({ checkpoint: { id: at.configurable.checkpoint_id, channel_values: { document, i: 100 } } });
});

it("refuses what is no id", async () => {
  const saver = new LineageSaver(client, { prefix: newPrefix() });
  for (const id of ["", 7, null, "\ud800"]) {
    await expect(saver.put(config(id), emptyCheckpoint(), loop, {})).rejects.toThrow("thread_id");
  }
  await expect(saver.put(config("t"), { ...emptyCheckpoint(), id: 7 }, loop, {})).rejects.toThrow("checkpoint_id");
  for (const id of ["__proto__", "..", "../../x", "a\u0000b", "x".repeat(3000)]) {
    const put = saver.put(config(id), emptyCheckpoint(), loop, {});
    await put.then(() => saver.getTuple(config(id)).then((t) => expect(t.config.configurable.thread_id).toBe(id)), (err) => expect(err.status).toBe(400));
  }
  expect({}.configurable).toBeUndefined();
});
