// Every method of the client, and by them every route of the API.
import { randomUUID } from "node:crypto";
import { Client, Context, Thread } from "@lineage-store/client";
import { Transport } from "../src/transport.js";
import { client, collect } from "./client.js";

const sent = new Set();
const { open } = Transport.prototype;
Transport.prototype.open = function (method, path, ...rest) {
  sent.add(`${method} ${path.split("?")[0]}`);
  return open.call(this, method, path, ...rest);
};
const called = new Set();
const classes = { Client: Client.prototype, Thread: Thread.prototype, Context: Context.prototype, Values: Object.getPrototypeOf(client.values) };
const methods = Object.entries(classes).flatMap(([of, prototype]) => Object.getOwnPropertyNames(prototype).filter((name) => name !== "constructor").map((name) => [of, prototype, name]));
for (const [of, prototype, name] of methods) {
  const method = prototype[name];
  prototype[name] = function (...args) {
    called.add(`${of}.${name}`);
    return method.apply(this, args);
  };
}

const texts = async (messages) => (await collect(messages)).map((m) => m.text);

it("calls every route", async () => {
  const user = `ann ${randomUUID()}`;
  const word = `w${randomUUID().replaceAll("-", "")}`;
  const made = await client.createThread({ user, title: "A trip", id: randomUUID() });
  const thread = client.thread(made.id);
  const main = thread.context("main");
  expect((await collect(client.threads({ user }))).map((t) => t.id)).toEqual([made.id]);
  await thread.update({ merge: { topic: word } });
  expect((await thread.get()).metadata).toEqual({ topic: word });

  // Messages, files, documents.
  const usage = { input_tokens: 3, output_tokens: 4 };
  await main.append([{ text: `where ${word}?` }, { id: "msg_1", role: "assistant", type: "message", model: "claude-x", content: [{ type: "text", text: "to the sea" }], usage }]);
  await main.appendFile(Buffer.from("price"), { mediaType: "text/csv", query: { name: "prices.csv" } });
  await main.append([{ document: "plan", text: "a\nb\n" }, { document: "plan", text: "a\nc\n" }]);
  expect((await collect(main.documents({ name: "plan" }))).map((m) => m.revision)).toEqual([1, 2]);
  expect([(await main.document("plan")).text, (await main.document("plan", { revision: 1 })).text]).toEqual(["a\nc\n", "a\nb\n"]);
  expect((await main.diffDocument("plan", { from: 1 })).lines).toEqual([" a", "-b", "+c"]);
  expect((await main.request("anthropic")).messages[0]).toMatchObject({ role: "user" });
  expect((await main.resolved()).items.at(-1).type).toBe("resolved");

  // Branches, forks, merging, comparing.
  await thread.createBranch({ name: "side", from: ":2" });
  await thread.updateBranch("side", { name: "aside" });
  const aside = thread.context("aside");
  const { tip } = await aside.append([{ text: "on foot" }, { text: "hm" }]);
  expect((await collect(main.diff("aside"))).map((d) => [d.type, d.side]).slice(-3)).toEqual([["diff", "b"], ["diff", "b"], ["diff_summary", undefined]]);
  expect((await main.merge("aside")).added).toHaveLength(2);
  await aside.move("~1", { ifTip: tip });
  await aside.undo();
  expect(await collect(aside.moves())).toHaveLength(2);
  expect((await collect(thread.branches())).map((b) => b.name)).toContain("aside");
  const fork = await thread.fork({ from: "aside~1", subagent: true });
  expect((await collect(thread.contexts())).map((c) => c.id)).toContain(fork.id);
  const agent = client.context(fork.id);
  await agent.update({ model: "small" });
  expect((await agent.get()).model).toBe("small");
  await agent.return({ role: "assistant", text: "found" });
  await aside.sendTo("main");
  const edited = await aside.edit({ at: ":1", message: { text: "where else?" }, branch: "edited" });
  expect(await texts(client.context(edited.id).messages())).toEqual(["where else?"]);
  await thread.setCheckpoint("start", ":1");
  expect((await collect(thread.checkpoints())).map((c) => c.name)).toEqual(["start"]);
  await thread.deleteCheckpoint("start");

  // The thread as a chat, by the ids that its creator chose.
  const talk = await client.createThread({ user, keep: true });
  const chat = client.thread(talk.id);
  await chat.addChatMessage({ id: "q", role: "user", data: { text: `there ${word}` } });
  await chat.addChatMessage({ id: "a", parent: "q", role: "assistant", data: "1", created_at: "2026-01-01T00:00:00Z" });
  await chat.addChatMessage({ id: "a", parent: "q", role: "assistant", data: "1 2", replace: true });
  await chat.createChatBranch({ id: word, name: "side", head: "q", active: true });
  await chat.updateChatBranch(word, { head: "a", along: true });
  await chat.setChatCheckpoint({ name: "k", message: "q" });
  expect((await collect(chat.chatMessages({ to: "a", limit: 1 }))).map((m) => m.data)).toEqual(["1 2", { text: `there ${word}` }]);
  expect(await collect(chat.chatMessages({ id: "q" }))).toMatchObject([{ followed: true, parent: null }]);
  expect((await collect(chat.chatBranches())).map((b) => [b.name, b.head, b.active, b.length])).toEqual([["main", null, false, 0], ["side", "a", true, 2]]);
  expect((await collect(chat.chatCheckpoints({ name: "k" }))).map((c) => c.message)).toEqual(["q"]);
  expect((await chat.chatGraph()).nodes).toHaveLength(3);
  expect((await collect(chat.searchChat(word, { limit: 1 }))).map((m) => m.id)).toEqual(["q"]);
  expect((await collect(client.chats({ user, branch: word }))).map((c) => c.id)).toEqual([talk.id]);
  await chat.delete();

  // Alternatives and summaries.
  const offered = (await aside.offer({ count: 2 })).items;
  for (const [i, o] of offered.entries()) await client.context(o.context).append([{ role: "assistant", text: `answer ${i}` }]);
  expect(await collect(aside.alternatives())).toHaveLength(2);
  await aside.choose(offered[1].context);
  expect((await texts(aside.messages())).at(-1)).toBe("answer 1");
  const summary = await aside.summarize({ text: "short", first: 1, last: 2 });
  expect((await collect(aside.summaries())).map((s) => s.id)).toEqual([summary.id]);
  await aside.deleteSummary(summary.id);

  // Values of every kind of owner.
  for (const values of [thread.values, aside.values, client.values, client.valuesOfUser(user), client.valuesOfApplication(word)]) {
    await values.set(word, 1);
    await values.set(word, { n: [2] });
    expect((await values.get(word)).value).toEqual({ n: [2] });
    expect((await collect(values.history(word))).map((v) => v.value)).toEqual([{ n: [2] }, 1]);
    expect((await collect(values.list({ prefix: word }))).map((v) => v.key)).toEqual([word]);
    await values.delete(word);
    await expect(values.get(word)).rejects.toMatchObject({ type: "not-found" });
  }

  // Content.
  const [first, , file] = await collect(main.messages());
  expect(Buffer.from(await client.content(file.content_id)).toString()).toBe("price");
  expect(await collect(client.uses(first.content_id))).toHaveLength(1); // forks share it
  const [said] = await collect(client.context(edited.id).messages());
  expect((await collect(client.provenance(said.content_id))).map((c) => c.id)).toEqual([said.content_id, first.content_id]);
  const content = await client.putContent(Buffer.from(word), { mediaType: "text/plain" });
  await main.append([{ content_id: content.id }]);
  expect(await client.eraseContent(content.id, { dryRun: true })).toMatchObject([{ uses: 1, erased: false }]);
  expect(await client.eraseContent(content.id)).toMatchObject([{ erased: true }]);
  expect(await main.erase(":2", { dryRun: true })).toMatchObject([{ erased: false }]);
  await aside.append([{ text: `secret ${word}` }]);
  await expect(aside.erase("")).rejects.toMatchObject({ type: "invalid" });
  expect(await aside.erase("aside")).toMatchObject([{ erased: true }]);

  // Views.
  expect((await collect(client.search(word))).map((h) => h.type)).toContain("hit");
  expect((await collect(client.search("nothing like this", { thread: made.id })))).toEqual([]);
  expect((await collect(client.usage({ by: ["model"], thread: made.id }))).at(-1)).toMatchObject({ total: true, input_tokens: 3, output_tokens: 4 });
  expect(await collect(client.search(word, { role: ["tool"], user, since: "2001-01-01T00:00:00Z" }))).toEqual([]);
  expect((await collect(client.usage({ by: ["day"], user, model: "claude-x", zone: "Europe/Lisbon" }))).at(-1)).toMatchObject({ total: true, requests: 1 });
  expect((await collect(client.usage({ by: ["day"], user, model: "other" }))).at(-1)).toMatchObject({ total: true, requests: 0 });
  expect((await client.stats()).threads).toBeGreaterThan(0);
  expect((await thread.graph()).items.length).toBeGreaterThan(1);
  expect(Buffer.from(await thread.export({ format: "markdown" })).toString()).toContain("to the sea");
  await expect(thread.native()).rejects.toMatchObject({ type: "not-found" }); // it is of no file
  expect((await thread.resume({ agent: "codex", dir: "/tmp", dry_run: true })).type).toBe("resumed");
  expect(await client.importBundle(await client.bundle([made.id]))).toMatchObject({ threads: 0, conflicts: [] });
  const rest = await client.bundle([made.id], { against: await client.inventory() });
  expect(rest.length).toBeLessThan((await client.bundle([made.id])).length);
  expect(await client.importBundle(rest)).toMatchObject({ threads: 0, conflicts: [] });
  const archive = Buffer.from(`{"messages":[{"role":"user","content":"${word} again"},{"role":"assistant","content":"yes"}]}\n`);
  expect((await client.import(archive, { prefix: word, user })).type).toBe("import");
  expect(await collect(client.threads({ user }))).toHaveLength(2);

  // Streams, a batch, and what deletes.
  const followed = aside.follow({ after: "empty" });
  expect((await followed.next()).value.event).toBe("messages");
  const events = client.events({ from: 1, thread: made.id });
  expect((await events.next()).value.id).toBeDefined();
  await Promise.all([followed.return(), events.return()]);
  expect(await client.batch([{ op: "append", thread: made.id, context: "main", messages: [{ text: "last" }] }])).toHaveLength(1);
  const outside = await client.createContext({ model: "m" });
  await client.context(outside.id).delete();
  const copy = await thread.copy({ title: "a copy" });
  await thread.deleteBranch("edited");
  await client.thread(copy.id).delete();
  expect((await client.deleteUser(user)).threads).toBe(2);
  await expect(thread.get()).rejects.toMatchObject({ type: "not-found" });
  const { paths } = await client.send("GET", "/v1/openapi.json");
  client.close();

  expect(methods.map(([of, , name]) => `${of}.${name}`).filter((name) => !called.has(name))).toEqual([]);
  // The values of a context are those of one found by its id as well, and so on.
  const short = (route) => route.replace("/v1/threads/{thread}/contexts/{context}", "/v1/contexts/{context}");
  const patterns = Object.entries(paths).map(([path, methods]) => [path, new RegExp(`^${path.replaceAll(/\{[^}]*\}/g, "[^/]+")}$`), Object.keys(methods)]);
  const reached = new Set();
  for (const one of sent) {
    const [method, path] = one.split(" ");
    const template = patterns.filter(([, pattern]) => pattern.test(path)).sort(([a], [b]) => a.split("{").length - b.split("{").length)[0];
    if (template !== undefined) reached.add(short(`${method} ${template[0]}`));
  }
  const all = patterns.flatMap(([path, , methods]) => methods.map((method) => short(`${method.toUpperCase()} ${path}`)));
  expect(all.filter((route) => !reached.has(route))).toEqual([]);
});
