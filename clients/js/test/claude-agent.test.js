import { InMemorySessionStore, foldSessionSummary, forkSession, getSessionInfo, getSessionMessages, listSessions, listSubagents, renameSession } from "@anthropic-ai/claude-agent-sdk";
import { randomUUID } from "node:crypto";
import { LineageSessionStore } from "@lineage-store/client/claude-agent";
import { client, collect, other, random } from "./client.js";

const newStore = (of = client, prefix = `${randomUUID()}/`) => new LineageSessionStore(of, { prefix });
const entry = (type, more = {}) => ({ type, ...more });
const key = { projectKey: "proj", sessionId: "sess" };
const sub = (name, of = key) => ({ ...of, subpath: `subagents/${name}` });
const user = (content, more) => ({ type: "user", uuid: randomUUID(), parentUuid: null, sessionId: "sess", cwd: "/home/ada/work", version: "2.1.0", timestamp: "2026-05-01T10:00:00.123Z", message: { role: "user", content }, ...more });
const assistant = (text, more) => ({ ...user(""), type: "assistant", message: { id: `msg_${randomUUID()}`, type: "message", role: "assistant", model: "claude-x-1", content: [{ type: "text", text }], usage: { input_tokens: 3, output_tokens: 5 } }, ...more });

const seeds = Array.from({ length: Number(process.env.LINEAGE_SEEDS ?? 2) }, (_, i) => i + 1);

/** Entries of all kinds, with what JSON can hold. */
function anyEntry(n) {
  const texts = ["", "a", "long ".repeat(50), "\u0000\u001b[31m", "𐀀\ud800", "__proto__"];
  switch (n(7)) {
    case 0: return user(texts[n(6)]);
    case 1: return assistant(texts[n(6)], { isSidechain: n(2) === 0 });
    case 2: return user([{ type: "tool_result", tool_use_id: "t", content: texts[n(6)] }], { toolUseResult: { n: [n(3), null, { deep: 1.5e300 }] }, message: n(5) === 0 ? null : { content: texts[n(6)] } });
    case 3: return entry("file-history-snapshot", { messageId: texts[n(6)], snapshot: { [texts[n(6)]]: n(9) } });
    case 4: return entry("custom-title", { customTitle: texts[n(6)], entry: 1, message: texts[n(6)] });
    case 5: return entry(texts[n(6)], { uuid: n(2) === 0 ? "" : randomUUID(), timestamp: texts[n(6)], message: { role: 1 } });
    default: return JSON.parse(`{"type":"system","subtype":"x","uuid":${JSON.stringify(randomUUID())},"content":"c","__proto__":{"a":1},"after":7}`);
  }
}

// Whatever stores of two processes are asked in turns, they answer as the memory of the SDK does.
it.each(seeds)("answers as InMemorySessionStore does, seed %i", async (seed) => {
  const n = random(seed);
  const prefix = `${randomUUID()}/`;
  const stores = [newStore(client, prefix), newStore(other, prefix)];
  const memory = new InMemorySessionStore();
  const projects = ["p", "-home-é~2"];
  const sessions = ["s", "a b%2F"];
  const subpaths = [undefined, undefined, undefined, "subagents/agent-1", "~1:@{é"];
  const appended = [];
  for (let step = 0; step < 60; step++) {
    const store = stores[n(2)];
    const at = { projectKey: projects[n(2)], sessionId: sessions[n(2)] };
    const subpath = subpaths[n(5)];
    if (subpath !== undefined) at.subpath = subpath;
    switch (n(9)) {
      case 0: if (n(3) === 0) {
        await Promise.all([store.delete(at), memory.delete(at)]);
        for (let i = appended.length - 1; i >= 0; i--) {
          const was = appended[i].at;
          if (was.projectKey === at.projectKey && was.sessionId === at.sessionId && (subpath === undefined || was.subpath === subpath)) appended.splice(i, 1);
        }
      } break;
      case 1: case 2: if (appended.length > 0) { // again, with something new at the end
        const { at, entries } = appended[n(appended.length)];
        const more = anyEntry(n);
        await Promise.all([store.append(at, [...entries.filter((e) => e.uuid), more]), memory.append(at, [more])]);
        break;
      } // falls through
      default: {
        const entries = Array.from({ length: 1 + n(5) }, () => anyEntry(n));
        await Promise.all([store.append(at, entries), memory.append(at, entries)]);
        appended.push({ at, entries });
      }
    }
    for (const s of stores) {
      expect(await s.load(at), `step ${step}`).toEqual(JSON.parse(JSON.stringify(await memory.load(at))));
      expect((await s.listSubkeys(at)).sort()).toEqual((await memory.listSubkeys(at)).sort());
    }
    if (step % 5 === 0) {
      for (const projectKey of [...projects, "none"]) {
        const sorted = (list) => list.map(({ mtime, ...rest }) => ({ ...rest, recent: mtime > Date.now() - 3600e3 && Number.isInteger(mtime) })).sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1));
        expect(sorted(await store.listSessions(projectKey)), `step ${step}`).toEqual(sorted(await memory.listSessions(projectKey)));
        expect(sorted(await store.listSessionSummaries(projectKey))).toEqual(sorted(JSON.parse(JSON.stringify(await memory.listSessionSummaries(projectKey)))));
      }
    }
  }
});

// What the SDK relies on, as its documentation of SessionStore says it.
describe("the contracts of a session store", () => {
  it("returns entries in the order in which they were appended", async () => {
    const store = newStore();
    expect(await store.load(key)).toBeNull();
    expect(await store.load(sub("a"))).toBeNull();
    await store.append(key, []);
    expect(await store.load(key)).toBeNull();
    const all = [entry("a", { n: 1, nested: { x: [1, 2] } }), user("b"), entry("c"), assistant("d"), assistant("e"), entry("f")];
    await store.append(key, all.slice(0, 1));
    await store.append(key, all.slice(1, 4));
    await store.append(key, []);
    await Promise.all([store.append(key, all.slice(4, 5)), store.append(key, all.slice(5))]);
    expect(await store.load(key)).toEqual(all);
  });
  it("keeps projects, sessions and transcripts of subagents apart", async () => {
    const store = newStore();
    const keys = [{ projectKey: "A", sessionId: "s" }, { projectKey: "B", sessionId: "s" }, { projectKey: "A/s", sessionId: "x" }, { projectKey: "A", sessionId: "s/x" }, { projectKey: "A", sessionId: "s", subpath: "x" }];
    const same = user("with one id");
    await Promise.all(keys.map((k, i) => store.append(k, [same, entry(`${i}`)])));
    for (const [i, k] of keys.entries()) expect(await store.load(k)).toEqual([same, entry(`${i}`)]);
    expect((await store.listSessions("A")).map((s) => s.sessionId).sort()).toEqual(["s", "s/x"]);
    expect(await store.listSessions("never")).toEqual([]);
    expect(await store.listSubkeys(keys[0])).toEqual(["x"]);
    expect(await store.listSubkeys({ projectKey: "x", sessionId: "never" })).toEqual([]);
  });
  it("does not list a session that has transcripts of subagents only", async () => {
    const store = newStore();
    await store.append(sub("x"), [entry("a")]);
    expect(await store.listSessions("proj")).toEqual([]);
    expect(await store.load(key)).toBeNull();
    expect(await store.listSubkeys(key)).toEqual(["subagents/x"]);
  });
  it("deletes a transcript, or a session with all of them", async () => {
    const store = newStore();
    await store.delete({ projectKey: "x", sessionId: "never" });
    const others = [{ projectKey: "proj", sessionId: "other" }, { projectKey: "proj2", sessionId: "sess" }];
    for (const k of [key, sub("a"), sub("b"), ...others]) await store.append(k, [entry("e"), user("u")]);
    await store.delete(sub("a"));
    expect([await store.load(sub("a")), (await store.load(sub("b"))).length, (await store.load(key)).length]).toEqual([null, 2, 2]);
    await store.delete(key);
    for (const k of [key, sub("a"), sub("b")]) expect(await store.load(k)).toBeNull();
    expect(await store.listSubkeys(key)).toEqual([]);
    for (const k of others) expect(await store.load(k)).toHaveLength(2);
    await store.append(key, [user("again")]);
    expect(await store.load(key)).toHaveLength(1);
  });
  it("refuses what is no key", async () => {
    for (const wrong of [{}, { projectKey: "p" }, { ...key, subpath: "" }, { projectKey: "", sessionId: "s" }, { projectKey: "\ud800", sessionId: "s" }]) await expect(newStore().load(wrong)).rejects.toThrow(TypeError);
  });
});

it("keeps an entry with an id once, whoever appends it", async () => {
  const prefix = `${randomUUID()}/`;
  const all = Array.from({ length: 40 }, (_, i) => (i % 4 === 0 ? entry("note", { uuid: randomUUID(), i }) : user(`${i}`)));
  const stores = [newStore(client, prefix), newStore(other, prefix), newStore(client, prefix)];
  // Each appends all of them, in parts of its own, at the same time.
  await Promise.all(stores.map(async (store, s) => {
    for (let i = 0; i < all.length; i += s + 3) await store.append(key, all.slice(i, i + s + 3));
  }));
  const loaded = await stores[0].load(key);
  expect(loaded.map((e) => e.uuid).sort()).toEqual(all.map((e) => e.uuid).sort());
  const [one, again] = [user("one"), user("two")];
  await stores[1].append(key, [one, one, entry("no id"), again, one, entry("no id")]);
  expect((await stores[0].load(key)).slice(40)).toEqual([one, entry("no id"), again, entry("no id")]);
  // What is remembered of a session does not outlive it.
  await stores[0].append(key, [one]);
  await stores[1].delete(key);
  await stores[1].append(key, [...all, again, ...all]);
  await stores[0].append(key, [one, again]);
  expect(await stores[0].load(key)).toEqual([...all, again, one]);
});

it("folds a summary of all entries, with whoever appends", async () => {
  const prefix = `${randomUUID()}/`;
  const stores = [newStore(client, prefix), newStore(other, prefix)];
  await Promise.all(Array.from({ length: 12 }, (_, i) => stores[i % 2].append(key, [i % 3 === 0 ? entry("custom-title", { customTitle: `${i}` }) : user(`prompt ${i}`)])));
  const [summary] = await stores[0].listSessionSummaries("proj");
  const { mtime, ...expected } = foldSessionSummary(undefined, key, await stores[1].load(key), { mtime: summary.mtime });
  expect(summary).toMatchObject(JSON.parse(JSON.stringify(expected)));
  expect(await stores[0].listSessions("proj")).toEqual([{ sessionId: "sess", mtime }]);
});

it("is what the SDK reads sessions from, and people conversations", async () => {
  const sessionStore = newStore();
  const dir = "/home/ada/work";
  const sessionId = randomUUID();
  const at = { projectKey: "-home-ada-work", sessionId };
  const said = [user("Where to?"), assistant("To the sea."), user("By train?"), assistant("By train.")].map((e) => ({ ...e, sessionId }));
  for (const [i, e] of said.entries()) e.parentUuid = said[i - 1]?.uuid ?? null;
  await sessionStore.append(at, [entry("mode", { mode: "normal" }), ...said, entry("last-prompt", { lastPrompt: "By train?", sessionId })]);
  await sessionStore.append({ ...at, subpath: "subagents/agent-a1" }, [user("look", { isSidechain: true, agentId: "a1", sessionId })]);
  expect(await listSessions({ dir, sessionStore })).toMatchObject([{ sessionId, firstPrompt: "Where to?" }]);
  expect((await getSessionMessages(sessionId, { dir, sessionStore })).map((m) => m.message)).toEqual(said.map((e) => e.message));
  expect(await listSubagents(sessionId, { dir, sessionStore })).toEqual(["a1"]);
  await renameSession(sessionId, "A trip", { dir, sessionStore });
  expect(await getSessionInfo(sessionId, { dir, sessionStore })).toMatchObject({ customTitle: "A trip" });
  const fork = await forkSession(sessionId, { dir, sessionStore, upToMessageId: said[1].uuid });
  expect((await getSessionMessages(fork.sessionId, { dir, sessionStore })).map((m) => m.message)).toEqual(said.slice(0, 2).map((e) => e.message));
  // In the store it is a conversation of the agent in its project.
  const threads = (await collect(client.threads({ project: dir, agent: "claude-code" }))).filter((t) => t.metadata.session_id === sessionId);
  expect(threads).toMatchObject([{ title: "A trip", messages: 4, metadata: { model: "claude-x-1", agentVersion: "2.1.0" } }]);
  const thread = client.thread(threads[0].id);
  expect((await collect(thread.context("main").messages())).map((m) => [m.role, m.text])).toEqual([["user", "Where to?"], ["assistant", "To the sea."], ["user", "By train?"], ["assistant", "By train."]]);
  expect((await thread.context("main").request("openai")).messages.map((m) => m.role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect((await collect(client.usage({ thread: threads[0].id }))).at(-1)).toMatchObject({ input_tokens: 6, output_tokens: 10 });
});

it("divides what is larger than a request", async () => {
  const store = newStore();
  const large = Array.from({ length: 3 }, (_, i) => assistant(`${i}`.repeat(3 << 20)));
  const many = Array.from({ length: 4001 }, (_, i) => entry("x", { i }));
  await store.append(key, [...large, ...many]);
  const loaded = await store.load(key);
  expect(loaded.slice(0, 3).map((e) => e.message.content[0].text.length)).toEqual([3 << 20, 3 << 20, 3 << 20]);
  expect(loaded.slice(3)).toEqual(many);
  await expect(store.append(key, [user("x".repeat(17 << 20))])).rejects.toMatchObject({ type: "too-large" });
});

it("divides what has more records than a commit", async () => {
  const said = Array.from({ length: 4000 }, (_, i) => user(`${i}`));
  const texts = Array.from({ length: 12 }, (_, i) => ({ type: "text", text: `text ${i}` }));
  const many = Array.from({ length: 2000 }, (_, i) => user(texts.map(({ type, text }) => ({ type, text: `${text} of ${i}` }))));
  const store = newStore();
  await store.append(key, said);
  await store.append(key, many);
  expect(await store.load(key)).toEqual([...said, ...many]);
});
