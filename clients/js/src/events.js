import { setTimeout as sleep } from "node:timers/promises";
import { ConnectionError, LineageError } from "./errors.js";

const silence = 60_000; // the server sends something every 15 s
const maxEvent = 64 << 20;

/**
 * Yields the events of a stream of server-sent events as `{id, event, data}`, data parsed. A stream that breaks is opened again after the
 * last event; it ends when the caller stops, or with an answer that says that it cannot continue.
 */
export async function* events(transport, path, query, { lastEventID, signal } = {}) {
  let last = lastEventID;
  let pause = 100;
  for (;;) {
    const stop = new AbortController();
    const ended = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
    try {
      const headers = { Accept: "text/event-stream" };
      if (last !== undefined) headers["Last-Event-ID"] = last;
      const stream = await transport.open("GET", path, { query, headers, signal: ended, timeout: silence, stream: true });
      for await (const e of parse(stream)) {
        pause = 100;
        if (e.id !== undefined) last = e.id;
        if (e.data === undefined) continue;
        const data = JSON.parse(e.data);
        if (e.event === "diverged") throw new LineageError({ type: "another-history", title: "another history", status: 409, ...data });
        yield { id: e.id, event: e.event, data };
        if (e.event === "deleted") return;
      }
    } catch (err) {
      if (signal?.aborted) throw signal.reason;
      const again = err instanceof ConnectionError || (err instanceof LineageError && err.status === 503) || !(err instanceof LineageError) && "code" in err;
      if (!again) throw err;
    } finally {
      stop.abort();
    }
    await sleep(pause * (1 + Math.random()), undefined, { signal });
    pause = Math.min(pause * 2, 10_000);
  }
}

/** Yields the events of a stream of bytes. One without data has `data` undefined. */
export async function* parse(stream) {
  const decoder = new TextDecoder();
  let rest = []; // the parts of a line that has not ended
  let event = {};
  let data = [];
  let size = 0;
  for await (const part of stream) {
    if ((size += part.length) > maxEvent) throw new Error(`an event is larger than ${maxEvent} bytes`);
    let text = decoder.decode(part, { stream: true });
    if (rest.at(-1)?.endsWith("\r")) text = rest.pop() + text; // it may be half of a line end
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    rest.push(lines[0]);
    for (let i = 1; i < lines.length; i++) {
      const line = rest.join("");
      rest = [lines[i]];
      if (line === "") {
        if (data.length > 0) event.data = data.join("\n");
        if (event.id !== undefined || event.data !== undefined) yield { event: "message", ...event };
        event = {};
        data = [];
        size = 0;
        continue;
      }
      const [, field, value] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
      if (field === "data") data.push(value ?? "");
      else if ((field === "id" && !value?.includes("\0")) || field === "event") event[field] = value ?? "";
    }
  }
}
