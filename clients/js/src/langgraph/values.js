// How values are written in entries: as JSON where that gives back the very bytes, else in base64.

/** Encodes what a serializer returned: what is stored, and the text by which two values are the same. */
export function encode([type, data]) {
  const bytes = typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (type === "json") {
    const text = bytes.toString("utf8");
    try {
      const json = JSON.parse(text);
      if (JSON.stringify(json) === text && Buffer.byteLength(text) === bytes.length) return { stored: { json }, text };
    } catch {
      // Kept as bytes.
    }
  }
  const stored = { type, base64: bytes.toString("base64") };
  return { stored, text: textOf(stored) };
}

/** The text by which two stored values are the same. */
export function textOf(stored) {
  return stored.base64 === undefined ? JSON.stringify(stored.json) : `${stored.type}:${stored.base64}`;
}

/** Reads a stored value with a serializer. */
export function load(serde, stored) {
  if (stored.base64 !== undefined) return serde.loadsTyped(stored.type, Uint8Array.from(Buffer.from(stored.base64, "base64")));
  return serde.loadsTyped("json", JSON.stringify(stored.json));
}

const roles = new Map(Object.entries({
  HumanMessage: "user", HumanMessageChunk: "user", AIMessage: "assistant", AIMessageChunk: "assistant", SystemMessage: "system",
  SystemMessageChunk: "system", ToolMessage: "tool", ToolMessageChunk: "tool", FunctionMessage: "tool", FunctionMessageChunk: "tool",
}));
const other = "value";

/** Makes an element of a list a message of the store: one of LangChain with its role, anything else as a value. */
export function elementMessage(json) {
  const isMessage = json !== null && typeof json === "object" && json.lc === 1 && json.type === "constructor" && Array.isArray(json.id);
  const role = isMessage ? roles.get(json.id.at(-1)) : undefined;
  return role === undefined ? { role: other, content: { json } } : { role, content: json };
}

/** Reads an element of a list from its message. */
export function elementOf(message) {
  return message.role === other ? message.data.json : message.data;
}
