import { randomUUID } from "node:crypto";
import * as http from "node:http";
import * as https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { ConnectionError, LineageError } from "./errors.js";
import { SocketAgent } from "./socket.js";

const maxAnswer = 1 << 30;

/** Requests to one server, on its socket or its address. `find` returns the server that takes its place when it has ended. */
export class Transport {
  #server;
  #base;
  #agent;
  #streams; // has as many connections as streams: they leave those of requests free
  #token;
  #retries;
  #timeout;
  #find;
  #lost = false;
  #looking;

  constructor({ url, socket, token, find, retries = 3, timeout = 120_000 }) {
    this.#token = token;
    this.#retries = retries;
    this.#timeout = timeout;
    this.#find = find;
    this.#use({ url, socket });
  }

  #use({ url, socket }) {
    const base = new URL(socket === undefined ? url : "http://localhost");
    if (!/^https?:$/.test(base.protocol)) throw new TypeError(`url ${url}: only http and https`);
    const { Agent } = base.protocol === "https:" ? https : http;
    const agent = (options) => (socket === undefined ? new Agent(options) : new SocketAgent(socket, options));
    retire(this.#agent);
    this.#server = { url, socket };
    this.#base = base;
    this.#agent = agent({ keepAlive: true, maxSockets: 32 });
    this.#streams = agent({ keepAlive: false });
  }

  /** Finds the server again. Requests that wait for it share the result. */
  #look() {
    this.#looking ??= this.#find()
      .then((server) => {
        if ((server.socket ?? server.url) !== (this.#server.socket ?? this.#server.url)) this.#use(server);
        this.#lost = false;
      })
      .finally(() => (this.#looking = undefined));
    return this.#looking;
  }

  /** Ends idle connections, and each of the others with its request. */
  close() {
    this.#use(this.#server);
  }

  /**
   * Sends a request and returns its answer: JSON, or bytes with `bytes`. Reads, and writes with a key, are sent again where no answer
   * came. Each write has a key, unless that is null, or its body a stream, which cannot be sent twice.
   */
  async request(method, path, { query, body, headers = {}, key, bytes = false, signal } = {}) {
    const writes = method !== "GET";
    const streamed = body !== undefined && !(body instanceof Uint8Array) && typeof body === "object" && Symbol.asyncIterator in body;
    headers = { ...headers };
    const once = writes && (streamed || key === null);
    if (writes && !once) headers["Idempotency-Key"] = key ?? randomUUID();
    let payload = body;
    if (body !== undefined && !streamed && !(body instanceof Uint8Array)) {
      payload = Buffer.from(JSON.stringify(body));
      headers["Content-Type"] ??= "application/json";
    }
    for (let tried = 0; ; tried++) {
      try {
        const answer = await this.open(method, path, { query, body: payload, headers, signal });
        return await read(answer, bytes);
      } catch (err) {
        const again = err instanceof ConnectionError || (err instanceof LineageError && err.status === 503);
        if (!again || once || tried >= this.#retries || signal?.aborted) throw err;
        await sleep(50 * 2 ** tried * (1 + Math.random()), undefined, { signal });
      }
    }
  }

  /** Sends a request once and returns the answer before its body, an error for one that is not 2xx. A `stream` is an answer without an end. */
  async open(method, path, { query, body, headers = {}, signal, timeout = this.#timeout, stream = false } = {}) {
    if (this.#lost && this.#find !== undefined) await this.#look();
    const at = new URL(path, this.#base);
    if (!path.startsWith("/") || at.origin !== this.#base.origin) throw new TypeError(`${path}: not a path of the server`);
    for (const [name, value] of Object.entries(query ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) at.searchParams.append(name, String(one));
    }
    return new Promise((done, failed) => {
      const lose = () => (this.#lost ||= !signal?.aborted);
      const fail = (err) => {
        lose();
        failed(signal?.aborted ? signal.reason : new ConnectionError(`${method} ${path}: ${err.message}`, { cause: err }));
      };
      const lib = at.protocol === "https:" ? https : http;
      const options = { method, agent: stream ? this.#streams : this.#agent, headers: { Accept: "application/json", ...headers }, signal, timeout };
      if (this.#token !== undefined) options.headers.Authorization = `Bearer ${this.#token}`;
      if (body instanceof Uint8Array) options.headers["Content-Length"] = body.byteLength;
      const request = lib.request(at, options);
      request.on("error", fail);
      request.on("timeout", () => request.destroy(new Error(`no answer for ${timeout / 1000} s`)));
      request.on("response", (answer) => {
        answer.once("error", lose);
        if (answer.statusCode >= 200 && answer.statusCode < 300) return done(answer);
        collect(answer).then((b) => failed(problemOf(answer, b)), fail);
      });
      if (body === undefined || body instanceof Uint8Array) return request.end(body);
      (async () => {
        for await (const part of body) {
          if (request.destroyed) return;
          if (!request.write(part)) await drained(request);
        }
        request.end();
      })().catch((err) => request.destroy(err));
    });
  }
}

/** Ends the idle connections of an agent, and lets none become idle. */
function retire(agent) {
  if (agent === undefined) return;
  agent.keepAlive = false;
  for (const idle of Object.values(agent.freeSockets).flat()) idle.destroy();
}

/** Waits until a request can take more of its body, or has ended. */
function drained(request) {
  return new Promise((done) => {
    const end = () => {
      request.off("drain", end).off("close", end);
      done();
    };
    request.on("drain", end).on("close", end);
  });
}

async function read(answer, bytes) {
  let body;
  try {
    body = await collect(answer);
  } catch (err) {
    throw new ConnectionError(err.message, { cause: err });
  }
  if (bytes) return body;
  if (body.length === 0) {
    if (answer.statusCode !== 204) throw new ConnectionError(`an empty answer with status ${answer.statusCode}`);
    return undefined;
  }
  return JSON.parse(body.toString("utf8"));
}

async function collect(answer) {
  const parts = [];
  let size = 0;
  for await (const part of answer) {
    if ((size += part.length) > maxAnswer) throw new Error(`the answer is larger than ${maxAnswer} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function problemOf(answer, body) {
  try {
    const problem = JSON.parse(body.toString("utf8"));
    if (typeof problem.title === "string") return new LineageError({ ...problem, status: answer.statusCode });
  } catch {
    // Not of the server: a proxy, perhaps.
  }
  return new LineageError({ type: "failed", title: `status ${answer.statusCode}`, status: answer.statusCode, detail: body.toString("utf8", 0, 200) });
}
