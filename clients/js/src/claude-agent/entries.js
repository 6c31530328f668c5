// How the entries of a session are kept: what was said as messages of one branch, as an import of the session's file keeps it, and all
// other entries beside them, with the number of messages that were before each.

/** Whether an entry is something that was said. */
const isSaid = ({ type, message }) => (type === "user" || type === "assistant") && message !== null && typeof message === "object" && !Array.isArray(message);

/** The id of an entry, undefined if it has none: then it is never taken for one that is there. */
export const idOf = ({ uuid }) => (typeof uuid === "string" && uuid !== "" && uuid.isWellFormed() && uuid.length <= 1000 ? uuid : undefined);

const text = (value) => (typeof value === "string" && value !== "" && value.isWellFormed() ? value : undefined);
const time = (value) => (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(value) && !Number.isNaN(Date.parse(value)) ? value : undefined);

/** Divides entries into messages of the two branches. `sourceID` makes the id of a message from that of its entry; `length` messages were said. */
export function messagesOf(entries, sourceID, length) {
  const said = [];
  const others = [];
  for (const entry of entries) {
    const id = idOf(entry);
    const common = { id: id && sourceID(id), created_at: time(entry.timestamp) };
    if (isSaid(entry)) {
      const { message, ...metadata } = entry;
      const model = entry.type === "assistant" ? text(message.model) : undefined;
      said.push({ ...common, role: text(message.role) ?? entry.type, model, content: message, metadata });
    } else {
      others.push({ ...common, role: text(entry.type) ?? "entry", content: { entry }, metadata: { after: length + said.length } });
    }
  }
  return { said, others };
}

/** Joins the messages of the two branches to the entries, in the order in which they were appended. */
export function entriesOf(said, others) {
  const all = [];
  let next = 0;
  for (const m of others) {
    for (; next < said.length && next < m.metadata.after; next++) all.push(entryOf(said[next]));
    all.push(m.data.entry);
  }
  for (; next < said.length; next++) all.push(entryOf(said[next]));
  return all;
}

const entryOf = ({ data, metadata }) => ({ ...metadata, message: data });

/** What the entries say about their session, by the names that sessions of agents have it under in the metadata of threads. */
export function aboutOf(entries, was) {
  const about = {};
  for (const { isSidechain, cwd, gitBranch, version, type, message } of entries) {
    if (isSidechain === true) continue;
    if (was.cwd === undefined) about.cwd ??= text(cwd);
    if (was.gitBranch === undefined) about.gitBranch ??= text(gitBranch);
    about.agentVersion = text(version) ?? about.agentVersion;
    if (type === "assistant") about.model = text(message?.model) ?? about.model;
  }
  return about;
}

/** The title that the user gave to the session, if these entries have one. */
export function titleOf(entries) {
  return text(entries.findLast((e) => e.type === "custom-title")?.customTitle);
}
