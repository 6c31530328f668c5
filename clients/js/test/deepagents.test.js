import { ContextEngine, SqliteContextStore, XmlRenderer, agent, assistant, assistantText, chat, lastAssistantMessage, user } from "@deepagents/context";
import { tool } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";
import { randomUUID } from "node:crypto";
import { connect, findServer } from "@lineage-store/client";
import { HeadConflictError, LineageContextStore } from "@lineage-store/client/deepagents";
import { client, other, random, written } from "./client.js";
import { proxy } from "./proxy.js";

const seeds = (process.env.LINEAGE_SEEDS ?? "1,2").split(",").map(Number);
const renderer = new XmlRenderer();
const says = (id, role, text) => ({ id, role, parts: [{ type: "text", text }] });
const texts = (chain) => chain.map((m) => m.data.parts.map((p) => p.text).join());
const resolved = async (engine) => (await engine.resolve({ renderer })).messages.map((m) => m.parts.map((p) => p.text ?? p.type).join());

/** What a value says beside ids that are made at random, and times. */
function told(value, names) {
  const nameOf = (id) => (names.has(id) ? names.get(id) : names.set(id, names.size).get(id));
  return JSON.parse(JSON.stringify(value, (key, v) => {
    if (/^(createdAt|updatedAt|timestamp)$/.test(key)) return undefined;
    return typeof v === "string" && /^[0-9a-f]{8}-[0-9a-f-]{27}$/.test(v) ? nameOf(v) : v;
  }) ?? "null");
}

/** Everything in a chat. Of a reply that grew theirs has the last state only, and ours what was before under other ids as well. */
async function everything(store, chatId, names) {
  const graph = await store.getGraph(chatId);
  const branches = await store.listBranches(chatId);
  const chains = [];
  for (const b of branches) {
    const { isActive: _, ...of } = await store.getBranch(chatId, b.name);
    const chain = b.headMessageId === null ? [] : await store.getMessageChain(b.headMessageId);
    chains.push([of, chain, b.headMessageId !== null && (await store.hasChildren(b.headMessageId))]);
    for (const m of chain.slice(-1)) expect(await store.getMessage(m.id)).toEqual(m);
  }
  graph.nodes = graph.nodes.filter((n) => !n.id.includes("/"));
  const checkpoints = (await store.listCheckpoints(chatId)).sort((a, b) => (a.name < b.name ? -1 : 1));
  graph.checkpoints.sort((a, b) => (a.name < b.name ? -1 : 1));
  const active = await store.getActiveBranch(chatId);
  const chats = (await store.listChats({ metadata: { key: "nested.of", value: chatId } })).map(({ messageCount: _, ...c }) => c);
  return told({ branches, chains, active, messages: await store.getMessages(chatId), checkpoints, chats, chat: await store.getChat(chatId), graph }, names);
}

// Whatever the engine of the package is asked, on our store it answers and leaves what it does on theirs.
it.each(seeds)("the engine does as on SqliteContextStore, seed %i", async (seed) => {
  const n = random(seed);
  const chatId = `é/${randomUUID()}~1`;
  const theirs = new SqliteContextStore(":memory:");
  const ours = [new LineageContextStore(client), new LineageContextStore(other).chat(chatId)];
  const metadata = { nested: { of: chatId }, list: [1, { a: null }] };
  const both = [theirs, ours[0]].map((store) => new ContextEngine({ store, chatId, userId: "ann", metadata }));
  for (const e of both) await e.getTurnCount();
  const names = [new Map(), new Map()];
  let count = 0;
  const known = []; // ids of messages that are no roots
  const marks = ["a", "m~1", "main"];
  for (let step = 0; step < 50; step++) {
    const [kind, pick, id] = [n(13), n(1000), `${step}~1:é/"'`];
    const ask = async (engine) => {
      switch (kind) {
        case 0: return engine.rewind(known.length > 0 && pick % 7 > 0 ? known[pick % known.length] : "none");
        case 1: return engine.btw();
        case 2: return engine.checkpoint(marks[pick % 3]);
        case 3: return engine.restore(marks[pick % 3]);
        case 4: return engine.switchBranch(["main", "main-v2", "main-v3", "none"][pick % 4]);
        case 5: return engine.updateChat([{ title: `t ${pick}` }, { metadata: { [`k${pick % 3}`]: pick } }][pick % 2]);
        case 6: return engine.trackUsage({ inputTokens: pick, totalTokens: pick, inputTokenDetails: { cacheReadTokens: 1 } });
        case 7: // a reply that grows
          for (const text of ["1", "1 2", "1 2", "1 2 3"]) {
            engine.set(assistant(says(id, "assistant", text)));
            await engine.save({ branch: false });
          }
          return engine.getTurnCount();
        case 8: // a message that is there, edited
          if (known.length === 0) return undefined;
          engine.set(user(says(known[pick % known.length], "user", `edited ${pick}`)));
          return told(await engine.save(), new Map()).headMessageId === undefined;
        case 9: engine.set(lastAssistantMessage(`last ${pick}`)); await engine.resolve({ renderer }); return engine.getTurnCount().then(() => engine.switchBranch(engine.branch));
        default:
          engine.set(...Array.from({ length: 1 + (pick % 3) }, (_, i) => (i % 2 === 0 ? user(says(`${id}${i}`, "user", `q ${pick} ${i}`)) : assistantText(`a ${pick}`, { id: `${id}${i}` }))));
          return pick % 5 === 0 ? engine.getTurnCount() : engine.save();
      }
    };
    const [a, b] = await Promise.allSettled(both.map(ask));
    expect(b.status, `step ${step}, ${kind}: ${a.reason} ${b.reason}`).toBe(a.status);
    if (kind !== 8) expect(told(b.value, names[1]), `step ${step}`).toEqual(told(a.value, names[0]));
    if (a.status === "rejected") expect(b.reason.message).toBe(a.reason.message);
    expect([both[1].branch, told(both[1].headMessageId, names[1])]).toEqual([both[0].branch, told(both[0].headMessageId, names[0])]);
    if (both[0].headMessageId !== undefined && kind >= 7) {
      const { parentId } = await theirs.getMessage(both[0].headMessageId);
      if (parentId !== null && !/^[0-9a-f]{8}-/.test(both[0].headMessageId)) known.push(both[0].headMessageId);
    }
    if (step % 7 === 0) {
      count++;
      const [x, y, z] = [await everything(theirs, chatId, names[0]), await everything(ours[0], chatId, names[1]), await everything(ours[1], chatId, names[1])];
      expect(y, `step ${step}`).toEqual(x);
      expect(z).toEqual(y);
    }
  }
  expect(count).toBe(8);
  expect(await ours[1].deleteChat(chatId, { userId: "bob" })).toBe(false);
  expect(await ours[1].deleteChat(chatId, { userId: "ann" })).toBe(true);
  expect(await ours[0].deleteChat(chatId)).toBe(false);
  expect([await ours[1].getChat(chatId), await ours[1].listBranches(chatId), (await ours[1].getGraph(chatId)).nodes]).toEqual([undefined, [], []]);
});

it("chats of two users with equal ids are apart", async () => {
  const prefix = `${randomUUID()}/`;
  const store = new LineageContextStore(client, { prefix });
  const word = `w${randomUUID().replaceAll("-", "")}`;
  const engines = ["ann", "bob"].map((userId) => new ContextEngine({ store: store.chat(`of ${userId}`), chatId: `of ${userId}`, userId }));
  for (const e of engines) {
    e.set(user(says("q", "user", `what's ${word} of ${e.chatId}?`)), assistantText("to the sea.", { id: "a" }));
    await e.save();
    await e.checkpoint("k");
    e.set(assistantText("or not", { id: "b" }));
    await e.save();
    await e.restore("k");
  }
  expect(await resolved(engines[0])).toEqual([`what's ${word} of of ann?`, "to the sea."]);
  await expect(engines[0].rewind("of bob")).rejects.toThrow('Message "of bob" not found');
  await expect(store.getMessage("q")).rejects.toThrow(/in several chats: "of (ann|bob)", "of (ann|bob)"\nstore\.chat/);
  const anns = new LineageContextStore(other, { prefix, user: "ann" });
  expect([(await anns.getMessage("q")).chatId, await anns.hasChildren("q"), await anns.hasChildren("b"), await anns.getMessage("none")]).toEqual(["of ann", true, false, undefined]);
  expect((await anns.listChats()).map((c) => c.id)).toEqual(["of ann"]);
  expect((await store.chat("of bob").getMessage("q")).chatId).toBe("of bob");
  await expect(store.upsertChat({ id: "of ann", userId: "bob" })).rejects.toThrow('Chat "of ann" belongs to a different user');
  await expect(store.createChat({ id: "of ann", userId: "ann" })).rejects.toThrow('Chat "of ann" already exists');
  for (const query of [word, "what's", "sea.", '"', "*", "c++", "hyphen-ated", ""]) {
    const hits = await store.searchMessages("of ann", query);
    expect(hits.every((h) => h.message.chatId === "of ann"), query).toBe(true);
    expect(hits.length, query).toBe({ [word]: 1, "what's": 1, "sea.": 1 }[query] ?? 0);
  }
  const [hit] = await store.searchMessages("of bob", word, { roles: ["user"], limit: 1 });
  expect([hit.message.id, hit.rank < 0, hit.snippet.includes(`<mark>${word}</mark>`)]).toEqual(["q", true, true]);
  expect(await store.searchMessages("of bob", "sea", { roles: ["user"] })).toEqual([]);
  expect((await store.listChats({ offset: 1 })).map((c) => [c.id, c.messageCount, c.branchCount])).toEqual([["of ann", 3, 2]]);
  expect((await store.listChats({ userId: "ann", limit: 5 })).map((c) => c.id)).toEqual(["of ann"]);
});

it("what cannot be is an error that says so, and changes nothing", async () => {
  const store = new LineageContextStore(client);
  const [a, b] = [randomUUID(), randomUUID()];
  for (const id of [a, b]) await store.createChat({ id, userId: "ann" });
  const message = (id, parentId, data = id) => ({ id, chatId: a, parentId, name: "user", type: "message", data, createdAt: Date.now() });
  const [root, next] = [`root ${a}`, `next ${a}`];
  await store.addMessage(message(root, null));
  await store.addMessage(message(next, root));
  const branch = await store.getActiveBranch(a);
  await store.updateBranchHead(branch.id, next);
  const before = await store.getGraph(a);
  const m = `m ${a}`;
  await expect(store.addMessage(message(m, m))).rejects.toThrow("cannot be its own parent");
  await expect(store.addMessage(message(m, "none"))).rejects.toThrow('message "none" in chat');
  await expect(store.addMessage(message(root, null, "other"))).rejects.toMatchObject({ type: "exists" });
  await expect(store.addMessage({ ...message(m, next), chatId: b })).rejects.toThrow("belongs to a different chat");
  await expect(store.addMessage({ ...message(m, null), chatId: "none" })).rejects.toThrow('Chat "none" not found');
  await expect(store.addMessage({ ...message(m, null), data: undefined })).rejects.toMatchObject({ type: "invalid" });
  for (const id of ["", "\ud800"]) await expect(store.addMessage(message(id, null, 1))).rejects.toThrow("message id is not a text");
  await expect(store.addMessage(message("a\0", null))).rejects.toMatchObject({ type: "invalid" });
  await expect(store.setActiveBranch(a, "none")).rejects.toThrow('branch "none" in chat');
  await expect(store.updateBranchHead("none", root)).rejects.toThrow('Branch "none" not found');
  await expect(store.updateBranchHead(branch.id, "none")).rejects.toMatchObject({ type: "not-found" });
  await expect(store.createBranch({ ...branch, id: randomUUID() })).rejects.toMatchObject({ type: "exists" });
  await expect(store.createCheckpoint({ id: randomUUID(), chatId: a, name: "k", messageId: "none", createdAt: 1 })).rejects.toThrow('message "none"');
  await expect(store.updateChat("none", { title: "x" })).rejects.toThrow('Chat "none" not found');
  await expect(store.getMessages("none")).rejects.toThrow('Chat "none" not found');
  await store.deleteCheckpoint(a, "none");
  expect(await store.getGraph(a)).toEqual(before);
  expect([await store.getMessage(""), await store.getMessageChain("\ud800"), await store.getBranch(a, ""), await store.getCheckpoint("none", "k")]).toEqual([undefined, [], undefined, undefined]);
  expect((await store.getMessage(next)).parentId).toBe(root);
});

it("two engines on one chat lose nothing", async () => {
  const chatId = randomUUID();
  const engines = [client, other].map((c) => new ContextEngine({ store: new LineageContextStore(c), chatId, userId: "ann" }));
  engines[0].set(user(says(`q ${chatId}`, "user", "start")));
  await engines[0].save();
  await engines[1].getTurnCount(); // it knows the head
  engines.forEach((e, i) => e.set(user(says(`${i} ${chatId}`, "user", `of ${i}`))));
  const done = await Promise.allSettled(engines.map((e) => e.save()));
  expect(done.map((d) => d.status).sort()).toEqual(["fulfilled", "rejected"]);
  const late = done.findIndex((d) => d.status === "rejected");
  expect(done[late].reason).toBeInstanceOf(HeadConflictError);
  const store = new LineageContextStore(client, { chatId });
  expect(texts(await store.getMessages(chatId))).toEqual(["start", `of ${1 - late}`]);
  expect((await store.getGraph(chatId)).nodes).toHaveLength(3);
  const again = new ContextEngine({ store, chatId, userId: "ann" });
  again.set(user(says(`again ${chatId}`, "user", "again")));
  await again.save();
  expect(texts(await store.getMessages(chatId))).toEqual(["start", `of ${1 - late}`, "again"]);
  engines[1 - late].set(user(says(`${1 - late} ${chatId}`, "user", `of ${1 - late}`))); // it saves what it has saved
  await expect(engines[1 - late].save({ branch: false })).rejects.toBeInstanceOf(HeadConflictError);
  expect(texts(await store.getMessages(chatId))).toEqual(["start", `of ${1 - late}`, "again"]);
});

it("what several programs track and change in metadata at the same time is all there", async () => {
  const chatId = randomUUID();
  const engines = [client, other, client, other].map((c) => new ContextEngine({ store: new LineageContextStore(c), chatId, userId: "ann", metadata: { gone: 1, list: [{ a: 1 }] } }));
  await engines[0].save();
  await Promise.all(engines.map((e) => e.getTurnCount())); // each has read the chat
  const track = async (e, i) => {
    for (let n = 1; n <= 5; n++) await e.trackUsage({ inputTokens: n, outputTokens: i, inputTokenDetails: { cacheReadTokens: 1, noCacheTokens: undefined } });
  };
  const stores = [client, other].map((c) => new LineageContextStore(c).chat(chatId));
  const change = async (store, key) => {
    const { metadata } = await store.getChat(chatId);
    const { gone: _, ...rest } = metadata;
    await store.updateChat(chatId, { metadata: { ...rest, [key]: { __proto__: null, usage: 1 } } });
  };
  await Promise.all([...engines.map(track), change(stores[0], "x"), change(stores[1], "y")]);
  const { metadata } = await stores[0].getChat(chatId);
  expect(metadata).toEqual({ list: [{ a: 1 }], x: { usage: 1 }, y: { usage: 1 }, usage: { inputTokens: 60, outputTokens: 30, inputTokenDetails: { cacheReadTokens: 20 } } });
  await stores[0].updateChat(chatId, { metadata: { only: true } });
  await stores[1].updateChat(chatId, { title: "a title" });
  expect(await stores[1].getChat(chatId)).toMatchObject({ title: "a title", metadata: { only: true } });
});

it("metadata that a change, a creation or a list returned are what the next change is told by", async () => {
  const chatId = randomUUID();
  const store = new LineageContextStore(client);
  const add = (chat, n) => ({ metadata: { ...chat.metadata, usage: { totalTokens: (chat.metadata?.usage?.totalTokens ?? 0) + n } } });
  let chat = await store.createChat({ id: chatId, userId: "ann", metadata: { a: 1 } });
  chat = await store.updateChat(chatId, add(chat, 10));
  chat = await store.updateChat(chatId, add(chat, 5));
  expect(chat.metadata).toEqual({ a: 1, usage: { totalTokens: 15 } });
  chat = (await store.listChats({ userId: "ann" })).find((c) => c.id === chatId);
  chat = await store.updateChat(chatId, add(chat, 1));
  chat = await store.upsertChat({ id: chatId, userId: "ann" });
  chat = await store.updateChat(chatId, add(chat, 1));
  chat.metadata.usage.totalTokens += 100; // the caller's own
  chat = await store.updateChat(chatId, { metadata: chat.metadata });
  expect((await new LineageContextStore(other).getChat(chatId)).metadata).toEqual({ a: 1, usage: { totalTokens: 117 } });
});

it("an answer that is lost changes nothing twice", async () => {
  const { socket } = await findServer({ store: process.env.LINEAGE_STORE, runtime: process.env.LINEAGE_RUNTIME });
  let lost = 0;
  const broken = await proxy(socket, () => ++lost % 5 !== 0);
  const through = await connect({ socket: broken.path });
  const chatId = randomUUID();
  const store = new LineageContextStore(through).chat(chatId);
  const engine = new ContextEngine({ store, chatId, userId: "ann" });
  for (let i = 0; i < 3; i++) {
    engine.set(user(says(`${i}`, "user", `m ${i}`)));
    await engine.save();
    await engine.btw();
  }
  expect(texts(await store.getMessages(chatId))).toEqual(["m 0", "m 1", "m 2"]);
  expect((await store.listBranches(chatId)).map((b) => [b.name, b.messageCount])).toEqual([["main", 3], ["main-v2", 1], ["main-v3", 2], ["main-v4", 3]]);
  expect((await store.getGraph(chatId)).nodes).toHaveLength(3);
  expect(lost).toBeGreaterThan(10);
  through.close();
  broken.close();
});

it("chat() keeps a reply with calls of tools, which grows", async () => {
  const chatId = randomUUID();
  const store = new LineageContextStore(client).chat(chatId);
  const context = new ContextEngine({ store, chatId, userId: "ann" });
  const usage = { inputTokens: { total: 3 }, outputTokens: { total: 4 } };
  const steps = [
    [{ type: "tool-call", toolCallId: "c", toolName: "weather", input: "{}" }, { type: "finish", finishReason: { unified: "tool-calls" }, usage }],
    [{ type: "text-start", id: "1" }, { type: "text-delta", id: "1", delta: "It is sunny." }, { type: "text-end", id: "1" }, { type: "finish", finishReason: { unified: "stop" }, usage }],
  ];
  const model = new MockLanguageModelV3({ doStream: async () => ({ stream: simulateReadableStream({ chunks: steps.shift() }) }) });
  const weather = tool({ description: "the weather", inputSchema: { jsonSchema: { type: "object", properties: {} }, [Symbol.for("vercel.ai.schema")]: true, validate: (value) => ({ success: true, value }) }, execute: async () => "sun" });
  const stream = await chat(agent({ name: "a", context, model, tools: { weather } }), [says("q", "user", "How is the weather?")], { finalAssistantMetadata: async () => ({ final: true }) });
  for await (const part of stream) expect(part.type, JSON.stringify(part)).not.toBe("error");
  const chain = await store.getMessages(chatId);
  expect(chain.map((m) => m.name)).toEqual(["user", "assistant"]);
  expect(chain[1].data.parts.map((p) => p.type)).toEqual(["data-chat-title", "step-start", "tool-weather", "step-start", "text"]);
  expect(chain[1].data.metadata).toEqual({ final: true });
  const { title, metadata } = await store.getChat(chatId);
  expect([title, metadata.usage.totalTokens ?? metadata.usage.inputTokens]).toEqual(["How is the weather?", expect.any(Number)]);
});

it("a fork is a small record", async () => {
  const chatId = randomUUID();
  const store = new LineageContextStore(client).chat(chatId);
  const engine = new ContextEngine({ store, chatId, userId: "ann" });
  await engine.save();
  const thread = `=deepagents/${chatId}`;
  const add = (i) => ({ op: "add_chat_message", thread, id: `${i}`, parent: i === 0 ? undefined : `${i - 1}`, role: "user", kind: "message", data: says(`${i}`, "user", `text ${i} `.repeat(20)) });
  for (const from of [0, 550]) await client.batch(Array.from({ length: 550 }, (_, i) => add(from + i)));
  const chain = await store.getMessageChain("1099"); // of two pages
  expect(chain.map((m) => [m.id, m.parentId])).toEqual(Array.from({ length: 1100 }, (_, i) => [`${i}`, i === 0 ? null : `${i - 1}`]));
  const before = await written();
  const forked = await engine.rewind("1099");
  expect(forked.messageCount).toBe(1100);
  expect((await written()) - before).toBeLessThan(4096);
});
