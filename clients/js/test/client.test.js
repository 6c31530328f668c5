import { chmod, mkdir, mkdtemp, readdir, readlink, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { Client, ConnectionError, LineageError, connect, findServer, findServers, is } from "@lineage-store/client";
import { parse } from "../src/events.js";
import { Transport } from "../src/transport.js";
import { client, collect, other } from "./client.js";
import { proxy } from "./proxy.js";

const runtime = process.env.LINEAGE_RUNTIME;
const newThread = () => {
  const id = randomUUID();
  return client.createThread({ id }).then(() => client.thread(`=${id}`));
};

const program = process.env.LINEAGE_TEST_PROGRAM;
if (program) it("runs in the program that is tested", () => expect(process.versions).toHaveProperty(program));

describe("finding a server", () => {
  it("finds that of a store", async () => {
    const server = await findServer({ store: process.env.LINEAGE_STORE, runtime });
    expect(server.store).toBe(process.env.LINEAGE_STORE);
    expect(await findServers({ store: join(process.env.LINEAGE_STORE, "..", "none"), runtime })).toEqual([]);
    expect((await findServers({ runtime })).map((s) => s.pid)).toContain(server.pid);
    await expect(connect({ store: "/none", runtime })).rejects.toThrow(/no server runs for the store \/none\nstart one: lineage serve --store \/none/);
  });
  it("is not led elsewhere by files", async () => {
    const dir = await mkdtemp(join(tmpdir(), "found-"));
    const real = await findServer({ store: process.env.LINEAGE_STORE, runtime });
    const files = { "a.json": "{", "b.json": "null", "c.json": JSON.stringify({ store: real.store, url: real.url, socket: `../${real.socket}`, started: "1" }),
      "d.json": JSON.stringify({ store: real.store, url: real.url, socket: "gone.sock", started: "1" }), "e.json": JSON.stringify({ store: 1, url: 2 }), "f.json": "x".repeat(1 << 20) };
    for (const [name, text] of Object.entries(files)) await writeFile(join(dir, name), text);
    expect(await findServers({ runtime: dir })).toEqual([]);
    await writeFile(join(dir, "g.json"), JSON.stringify({ store: real.store, url: "http://127.0.0.1:9", started: "1" }));
    expect(await findServers({ runtime: dir })).toHaveLength(1);
    await chmod(dir, 0o777); // somebody else may have put it there
    expect(await findServers({ runtime: dir })).toEqual([]);
  });
  it.runIf(process.platform === "linux")("reaches a socket whose path is longer than Node accepts", async () => {
    const real = await findServer({ store: process.env.LINEAGE_STORE, runtime });
    const dir = join(await mkdtemp(join(tmpdir(), "found-")), "a".repeat(200));
    await mkdir(dir);
    await symlink(real.socket, join(dir, "s.sock"));
    await writeFile(join(dir, "a.json"), JSON.stringify({ store: real.store, url: "http://127.0.0.1:9", socket: "s.sock", started: "1" }));
    const long = await connect({ store: real.store, runtime: dir });
    const { id } = await long.createThread({});
    expect((await client.thread(id).get()).id).toBe(id);
    long.close();
    await expect(new Client({ socket: join(dir, "none", "s.sock"), retries: 0 }).stats()).rejects.toThrow(ConnectionError);
    const open = await Promise.all((await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
    expect(open).not.toContain(dir);
  });
  it.runIf(process.platform !== "win32")("finds the one that comes after a restart, and none of another store", async () => {
    const real = await findServer({ store: process.env.LINEAGE_STORE, runtime });
    const dir = await mkdtemp(join(tmpdir(), "found-"));
    const serve = async (name, store, onAnswer) => {
      const server = await proxy(real.socket, onAnswer);
      await symlink(server.path, join(dir, `${name}.sock`));
      await writeFile(join(dir, `${name}.json`), JSON.stringify({ store, url: "http://127.0.0.1:9", socket: `${name}.sock`, started: name }));
      return server;
    };
    const first = await serve("1", real.store);
    const found = await connect({ runtime: dir });
    const elsewhere = await serve("3", join(dir, "another"), () => false);
    const { id } = await found.createThread({});
    const context = found.thread(id).context("main");
    const stop = new AbortController();
    const followed = context.follow({ after: "empty", signal: stop.signal });
    const next = async () => (await followed.next()).value.data[0].text;
    await context.append([{ text: "zero" }]);
    expect(await next()).toBe("zero");
    const later = next();
    first.close();
    for (const { reason } of await Promise.allSettled([context.get(), context.append([{ text: "lost" }])])) expect(reason.message).toMatch(/no server runs for the store/);
    const second = await serve("2", real.store);
    const appended = await Promise.all([context.append([{ text: "one" }]), context.append([{ text: "two" }])]);
    expect(appended.map((a) => a.length).sort()).toEqual([2, 3]);
    expect([await later, await next()].sort()).toEqual(["one", "two"]);
    expect(elsewhere.count).toBe(0);
    stop.abort(new Error("enough"));
    await expect(followed.next()).rejects.toThrow("enough");
    found.close();
    second.close();
    elsewhere.close();
  });
});

describe("requests", () => {
  it("keeps a conversation", async () => {
    const thread = await newThread();
    const main = thread.context();
    const { tip, length } = await main.append([{ role: "user", text: "one" }, { role: "assistant", content: { n: 1.5, deep: [null, "\ud800"] } }], { ifTip: "" });
    expect(length).toBe(2);
    expect((await collect(main.messages())).map((m) => m.data ?? m.text)).toEqual(["one", { n: 1.5, deep: [null, "\ud800"] }]);
    await thread.createBranch({ name: "aside", from: ":1" });
    await thread.context("aside").append([{ text: "two" }]);
    expect((await collect(thread.branches())).map((b) => b.name).sort()).toEqual(["aside", "main"]);
    expect((await thread.context("aside").get()).length).toBe(2);
    await main.move(":1", { ifTip: tip });
    expect((await main.undo()).to).toBe(tip);
    expect((await main.request("openai")).messages[0]).toMatchObject({ role: "user", content: "one" });
    await thread.values.set("k/é", { n: [1] });
    expect((await thread.values.get("k/é")).value).toEqual({ n: [1] });
    await thread.update({ title: "a title" });
    expect((await thread.get()).title).toBe("a title");
    const copy = await thread.copy({ title: "a copy" });
    expect((await collect(client.thread(copy.id).context("aside").messages())).map((m) => m.text)).toEqual(["one", "two"]);
    await thread.delete();
    await expect(thread.get()).rejects.toMatchObject({ name: "LineageError", type: "not-found", status: 404 });
    expect((await client.thread(copy.id).context("aside").get()).length).toBe(2);
  });
  it("says what the tip is", async () => {
    const context = (await newThread()).context("main");
    const { tip } = await context.append([{ text: "one" }]);
    const err = await context.append([{ text: "two" }], { ifTip: "" }).catch((e) => e);
    expect(err).toBeInstanceOf(LineageError);
    expect([err.type, err.status, err.tip, is(err, "exists", "tip-moved")]).toEqual(["tip-moved", 412, tip, true]);
    expect((await context.append([{ text: "two" }], { ifTip: tip })).length).toBe(2);
  });
  it("changes several things in one commit, or none", async () => {
    const id = randomUUID();
    const create = { op: "create_thread", id };
    const append = { op: "append", thread: "#0", context: "main", messages: [{ text: "one" }] };
    await expect(client.batch([create, append, { ...append, context: "none" }])).rejects.toMatchObject({ status: 404 });
    await expect(client.thread(`=${id}`).get()).rejects.toMatchObject({ status: 404 });
    const [thread, appended] = await client.batch([create, append]);
    expect([thread.source_id, appended.length]).toEqual([id, 1]);
  });
  it("reads lists page after page", async () => {
    const context = (await newThread()).context("main");
    await context.append(Array.from({ length: 25 }, (_, i) => ({ text: `${i}` })));
    expect((await collect(context.messages({ limit: 10 }))).map((m) => m.text)).toEqual(Array.from({ length: 25 }, (_, i) => `${i}`));
    expect(await collect(context.messages({ limit: 10 }, { max: 12 }))).toHaveLength(12);
  });
  it("leads nowhere else by names", async () => {
    for (const id of ["a/b", "../threads", "a?b#c", "%2e%2e", "=x", " é\u0001"]) {
      const key = `${randomUUID()}${id}`;
      await client.createThread({ id: key });
      expect((await client.thread(`=${key}`).get()).source_id).toBe(key);
    }
    for (const name of ["", ".", "..", 7, undefined]) expect(() => client.thread(name)).toThrow(TypeError);
  });
  it("sends a write again where no answer came, and it is done once", async () => {
    const { socket } = await findServer({ store: process.env.LINEAGE_STORE, runtime });
    const broken = await proxy(socket, (n) => n !== 1);
    const shaky = new Client({ socket: broken.path });
    const thread = await newThread();
    const appended = await shaky.thread(thread.ref).context("main").append([{ text: "once" }]);
    expect([appended.length, broken.count]).toEqual([1, 2]);
    expect((await thread.context("main").get()).length).toBe(1);
    shaky.close();
    broken.close();
    await expect(new Client({ socket: broken.path, retries: 1 }).threads().next()).rejects.toThrow(ConnectionError);
  });
  it("ends when the caller does", async () => {
    const stop = new AbortController();
    stop.abort(new Error("enough"));
    await expect(client.createThread({}, { signal: stop.signal })).rejects.toThrow("enough");
  });
});

describe("connections", () => {
  /** Serves /wait when told to, /broken never, streams of events without an end, and how long a body is. */
  const serve = async () => {
    const waiting = [];
    const server = createServer((request, answer) => {
      const path = request.url.split("?")[0];
      if (path === "/broken") return request.socket.destroy();
      if (path === "/v1/events") return answer.writeHead(200, { "Content-Type": "text/event-stream" }).write("id: 1-0\n\n");
      if (path === "/wait") return waiting.push(() => answer.end("{}"));
      let size = 0;
      request.on("data", (part) => (size += part.length)).on("end", () => answer.end(JSON.stringify({ size })));
    });
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    server.keepAliveTimeout = 60_000;
    const count = promisify(server.getConnections.bind(server));
    return {
      url: `http://127.0.0.1:${server.address().port}`,
      until: (check) => expect.poll(async () => check(waiting, await count()), { timeout: 120_000 }).toBe(true),
      answer: () => waiting.pop()(),
      close: () => (server.closeAllConnections(), server.close()),
    };
  };
  it("end with their requests once the client is closed, also those to the server before a restart", async () => {
    const first = await serve();
    const second = await serve();
    const transport = new Transport({ url: first.url, find: async () => ({ url: second.url }), retries: 1 });
    const begun = transport.request("GET", "/wait");
    await first.until((waiting) => waiting.length === 1);
    await expect(transport.request("GET", "/broken")).rejects.toThrow(ConnectionError);
    const other = transport.request("GET", "/wait");
    await second.until((waiting) => waiting.length === 1);
    transport.close();
    first.answer();
    second.answer();
    expect([await begun, await other]).toEqual([{}, {}]);
    for (const server of [first, second]) await server.until((_, connections) => connections === 0);
    await transport.request("GET", "/again");
    transport.close();
    for (const server of [first, second]) server.close();
  });
  it("of streams leave requests theirs", async () => {
    const server = await serve();
    const busy = new Client({ url: server.url, retries: 0 });
    const stop = new AbortController();
    const streams = Array.from({ length: 100 }, () => busy.events({ signal: stop.signal }).next());
    await server.until((_, connections) => connections === 100);
    await busy.stats();
    stop.abort(new Error("enough"));
    expect((await Promise.allSettled(streams)).map(({ reason }) => reason?.message)).toEqual(streams.map(() => "enough"));
    busy.close();
    server.close();
  });
  it("take a body part by part", async () => {
    const server = await serve();
    const uploads = new Client({ url: server.url });
    const warnings = [];
    const warned = (warning) => warnings.push(warning.message);
    process.on("warning", warned);
    async function* body() {
      for (let i = 0; i < 60; i++) yield Buffer.alloc(256 << 10);
    }
    expect(await uploads.send("POST", "/upload", { body: body(), key: null })).toEqual({ size: 15 << 20 });
    process.off("warning", warned);
    expect(warnings).toEqual([]);
    uploads.close();
    server.close();
  });
});

describe("events", () => {
  it("continue where a stream broke, without a gap or a second time", async () => {
    const { socket } = await findServer({ store: process.env.LINEAGE_STORE, runtime });
    const middle = await proxy(socket);
    const through = new Client({ socket: middle.path });
    const thread = await newThread();
    const { id } = await thread.get();
    const writer = other.thread(thread.ref).context("main");
    const stop = new AbortController();
    const { tip } = await writer.append([{ text: "first" }]);
    const followed = through.thread(thread.ref).context("main").follow({ after: tip, signal: stop.signal });
    const events = through.events({ thread: id, from: 1, signal: stop.signal });
    const texts = [];
    const ids = [];
    for (let i = 0; i < 12; i++) {
      await writer.append([{ text: `${i}` }]);
      const { value } = await followed.next();
      expect(value.event).toBe("messages");
      texts.push(value.data[0].text);
      for (let seen = false; !seen; ) {
        const { value: e } = await events.next();
        ids.push(Number.parseInt(e.id, 10));
        seen = JSON.stringify(e.data).includes(value.data[0].id);
      }
      if (i % 4 === 3) middle.cut();
    }
    expect(texts).toEqual(Array.from({ length: 12 }, (_, i) => `${i}`));
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
    stop.abort(new Error("enough"));
    await expect(followed.next()).rejects.toThrow("enough");
    await expect(events.next()).rejects.toThrow("enough");
    middle.close();
    through.close();
  });
  it("are read as they are written, however they are divided", async () => {
    const text = "\uFEFFid: 1\ndata: a\ndata:b\n\n: comment\n\nretry: 5\r\nevent: x\r\nid: 2\r\ndata\r\n\r\nid: 3\r\rdata: é\r\n\ndata: lost";
    const bytes = Buffer.from(text);
    for (const size of [1, 2, 3, 7, bytes.length]) {
      const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size));
      expect(await collect(parse(Readable.from(parts)))).toEqual([{ event: "message", id: "1", data: "a\nb" }, { event: "x", id: "2", data: "" }, { event: "message", id: "3" }, { event: "message", data: "é" }]);
    }
  });
  it("are read in time that grows with their size", async () => {
    // Whoever looks at all of a line again for each part of it does not end.
    const part = Buffer.from("x".repeat(1 << 10));
    const [event] = await collect(parse(Readable.from([Buffer.from("data: "), ...Array(32 << 10).fill(part), Buffer.from("\n\n")])));
    expect(event.data).toHaveLength(32 << 20);
    await expect(collect(parse(Readable.from(Array(65).fill(Buffer.alloc(1 << 20, "x")))))).rejects.toThrow("larger than 67108864 bytes");
  });
});
