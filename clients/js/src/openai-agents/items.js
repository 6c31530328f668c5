// How items are written as messages: as JSON, with bytes as {"$bytes": BASE64}.

/** Makes an item a message of the store. */
export function encode(item) {
  return { role: roleOf(item), content: write(item) };
}

function roleOf(item) {
  if (typeof item.role === "string" && item.role !== "") return item.role;
  return typeof item.type === "string" && /(_result|_output|_response)$/.test(item.type) ? "tool" : "assistant";
}

/** Reads the item of a message. */
export function decode(data) {
  if (data === null || typeof data !== "object") return data;
  if (Array.isArray(data)) return data.map(decode);
  const entries = Object.entries(data);
  if (entries.length === 1 && isMark(entries[0][0])) {
    const [key, value] = entries[0];
    return key === "$bytes" ? Uint8Array.from(Buffer.from(value, "base64")) : { [key.slice(1)]: decode(value) };
  }
  return Object.fromEntries(entries.map(([key, value]) => [key, decode(value)]));
}

const isMark = (key) => /^\$+bytes$/.test(key);

function write(value) {
  if (value === null || typeof value !== "object") return value;
  if (value instanceof Uint8Array) return { $bytes: Buffer.from(value).toString("base64") };
  if (Array.isArray(value)) return value.map(write);
  const entries = Object.entries(value).filter(([, v]) => v !== undefined);
  // What looks like bytes gets a $ more.
  if (entries.length === 1 && isMark(entries[0][0])) return { [`$${entries[0][0]}`]: write(entries[0][1]) };
  return Object.fromEntries(entries.map(([key, v]) => [key, write(v)]));
}

/** A text that is the same for equal values, whatever the order of their members. */
export function stable(value) {
  return JSON.stringify(sorted(write(value)));
}

function sorted(value) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) return value.map(sorted);
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, v]) => [key, sorted(v)]));
}
