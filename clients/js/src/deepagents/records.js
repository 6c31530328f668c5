// How the records of the API are read as those of deepagents.

/** A text that can be sent as it is. */
export function text(what, value) {
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) throw new TypeError(`${what} is not a text: ${JSON.stringify(value)}`);
  return value;
}

/** A time to send, of milliseconds. */
export const when = (millis) => (millis === undefined || millis === null ? undefined : new Date(millis).toISOString());
export const timeOf = (time) => Date.parse(time);

const times = (r) => ({ createdAt: timeOf(r.created_at), updatedAt: timeOf(r.updated_at) });

/** A chat, of the record of a thread. */
export function chatOf(prefix, thread) {
  return { id: thread.source_id.slice(prefix.length), userId: thread.user ?? "", title: thread.title, metadata: thread.metadata, ...times(thread) };
}

/** A chat of a list. */
export function infoOf(prefix, chat) {
  const { id, user, title, metadata, messages, branches } = chat;
  return { id: id.slice(prefix.length), userId: user ?? "", title, metadata, messageCount: messages, branchCount: branches, ...times(chat) };
}

export function messageOf(chatId, m) {
  return { id: m.id, chatId, parentId: m.parent, name: m.role, type: m.kind, data: m.data, createdAt: timeOf(m.created_at) };
}

/** A branch, with its length in a list and with its chat otherwise. */
export function branchOf(b, chatId) {
  const of = { id: b.id, name: b.name, headMessageId: b.head, isActive: b.active, createdAt: timeOf(b.created_at) };
  return chatId === undefined ? { ...of, messageCount: b.length } : { ...of, chatId };
}

/** A checkpoint, with its chat unless it is of a list. */
export function checkpointOf(c, chatId) {
  const of = { id: c.id, name: c.name, messageId: c.message, createdAt: timeOf(c.created_at) };
  return chatId === undefined ? of : { ...of, chatId };
}
