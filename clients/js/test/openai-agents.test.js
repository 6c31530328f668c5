import { Agent, MemorySession, Runner, Usage, tool } from "@openai/agents-core";
import { randomUUID } from "node:crypto";
import { LineageSession } from "@lineage-store/client/openai-agents";
import { client, other, random } from "./client.js";

const user = (content) => ({ type: "message", role: "user", content });
const answer = (text) => ({ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] });
const call = (callId, name = "look") => ({ type: "function_call", callId, name, arguments: '{"a":1}', status: "completed" });
const result = (callId) => ({ type: "function_call_result", callId, name: "look", status: "completed", output: { type: "text", text: "seen" } });

// Whatever sessions of two processes are asked in turns, they answer as MemorySession does.
it.each([1, 2, 3, 4, 5])("answers as MemorySession does, seed %i", async (seed) => {
  const n = random(seed);
  const sessionId = `${randomUUID()}/é ${seed}`;
  const sessions = [new LineageSession(client, { sessionId }), new LineageSession(other, { sessionId })];
  const memory = new MemorySession({ sessionId });
  const texts = ["", "a", "long ".repeat(50), "\u0000\u001b[31m", "𐀀\ud800", "$bytes"];
  const item = () => {
    switch (n(6)) {
      case 0: return user(texts[n(6)]);
      case 1: return user([{ type: "input_text", text: texts[n(6)] }, { type: "input_image", image: "data:image/png;base64,AAAA", providerData: { $bytes: "x" } }]);
      case 2: return call(`c${n(4)}`);
      case 3: return { ...result(`c${n(4)}`), providerData: { n: n(5), none: null, $bytes: { $$bytes: 1 } } };
      case 4: return { type: "reasoning", content: [{ type: "input_text", text: "hm" }], rawContent: [{ type: "reasoning_text", text: texts[n(6)] }] };
      default: return answer(texts[n(6)]);
    }
  };
  const some = (max) => Array.from({ length: n(max) }, item);
  const done = [];
  for (let step = 0; step < 50; step++) {
    const session = sessions[n(2)];
    const both = (f) => Promise.allSettled([f(session), f(memory)]).then(([a, b]) => {
      expect(a.status, `step ${step}: ${a.reason}`).toBe(b.status);
      if (b.status === "rejected") expect(a.reason.constructor.name).toBe(b.reason.constructor.name);
      expect(a.value).toEqual(b.value);
    });
    switch (n(8)) {
      case 0: await both((s) => s.popItem()); break;
      case 1: if (n(4) === 0) { await both((s) => s.clearSession()); done.length = 0; } break;
      case 2: {
        const mutations = Array.from({ length: n(3) }, () => ({ type: "replace_function_call", callId: `c${n(4)}`, replacement: call(`c${n(4)}`, "other") }));
        await both((s) => s.applyHistoryMutations({ mutations }));
        break;
      }
      case 3: case 4: {
        const items = await memory.getItems();
        const expectedSuffix = n(5) === 0 ? some(3) : items.slice(items.length - n(Math.min(4, items.length + 1)));
        const transaction = n(2) === 0 ? { type: "append_items", items: some(4) } : { type: "replace_suffix", expectedSuffix, replacement: some(3) };
        const again = done.length > 0 && n(3) === 0 ? done[n(done.length)] : undefined;
        const args = again === undefined ? { operationId: randomUUID(), transaction } : n(2) === 0 ? again : { ...again, transaction };
        done.push(args);
        await both((s) => s.applyHistoryTransaction(args));
        break;
      }
      default: { const items = some(5); await both((s) => s.addItems(items)); }
    }
    const limit = [undefined, 0, 1, 3, 100][n(5)];
    for (const s of sessions) expect(await s.getItems(limit), `step ${step}`).toEqual(await memory.getItems(limit));
  }
});

it("is the session of a run", async () => {
  let asked;
  const model = {
    async getResponse(request) {
      asked = request.input;
      const last = request.input.at(-1);
      const output = last.type === "function_call_result" ? [answer("it is sunny")] : [{ ...call(`call_${asked.length}`), name: "weather", arguments: "{}" }];
      return { usage: new Usage(), output, responseId: "r" };
    },
    getStreamedResponse() {
      throw new Error("not streamed");
    },
  };
  const weather = tool({ name: "weather", description: "the weather", parameters: { type: "object", properties: {}, required: [], additionalProperties: false }, strict: true, execute: async () => "sunny" });
  const agent = new Agent({ name: "a", model, tools: [weather] });
  const runner = new Runner({ tracingDisabled: true });
  const session = new LineageSession(client);
  const first = await runner.run(agent, "how is the weather?", { session });
  expect(first.finalOutput).toBe("it is sunny");
  const fork = await session.fork({ at: 1 });
  await runner.run(agent, "and tomorrow?", { session });
  expect(asked.map((i) => i.role ?? i.type)).toEqual(["user", "function_call", "function_call_result", "assistant", "user", "function_call", "function_call_result"]);
  expect((await fork.getItems()).map((i) => i.content)).toEqual(["how is the weather?"]);
});

it("forks share what was and go their own way", async () => {
  const session = new LineageSession(client);
  await session.addItems([user("one"), answer("two"), user("three")]);
  await session.applyHistoryTransaction({ operationId: "op", transaction: { type: "append_items", items: [answer("four")] } });
  const whole = await session.fork();
  const part = await session.fork({ at: 2, sessionId: randomUUID() });
  const empty = await session.fork({ at: 0 });
  await part.addItems([user("instead")]);
  await whole.applyHistoryTransaction({ operationId: "op", transaction: { type: "append_items", items: [answer("four")] } }); // was applied
  await session.clearSession();
  const texts = async (s) => (await s.getItems()).map((i) => (typeof i.content === "string" ? i.content : i.content[0].text));
  expect(await texts(session)).toEqual([]);
  expect(await texts(whole)).toEqual(["one", "two", "three", "four"]);
  expect(await texts(part)).toEqual(["one", "two", "instead"]);
  expect(await texts(empty)).toEqual([]);
  await expect(session.fork({ sessionId: await whole.getSessionId() })).rejects.toMatchObject({ type: "exists" });
  await expect(whole.fork({ at: 5 })).rejects.toThrow("has 4 items");
  await expect(new LineageSession(client).fork()).rejects.toMatchObject({ type: "not-found" });
});

it("several processes apply an operation once", async () => {
  const sessionId = randomUUID();
  const sessions = [client, other, client, other].map((c) => new LineageSession(c, { sessionId }));
  const operation = { operationId: "op", transaction: { type: "append_items", items: [user("once")] } };
  await Promise.all(sessions.flatMap((s, i) => [s.applyHistoryTransaction(operation), s.addItems([user(`of ${i}`)]), s.applyHistoryTransaction(operation)]));
  const items = await sessions[0].getItems();
  expect(items.map((i) => i.content).sort()).toEqual(["of 0", "of 1", "of 2", "of 3", "once"]);
});
