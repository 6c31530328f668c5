// Names of branches. Whatever a namespace or a channel is called, it is one part of a name.
import { randomBytes } from "node:crypto";
import { encodePart as encode } from "../names.js";

const logs = "checkpoints";

/** The branch with the checkpoints of a namespace. */
export function logName(ns) {
  return ns === "" ? logs : `${logs}/${encode(ns)}`;
}

/** The namespace of such a branch, undefined for others. */
export function nsOf(branch) {
  if (branch === logs) return "";
  return branch.startsWith(`${logs}/`) ? decodeURIComponent(branch.slice(logs.length + 1)) : undefined;
}

/** The branch that a thread begins with, and the channel whose elements it has. */
export const main = "main";
export const isMain = (ns, channel) => ns === "" && channel === "messages";

/** A new name for a branch with the elements of a list. */
export function listName(ns, channel) {
  const number = randomBytes(6).toString("hex");
  return isMain(ns, channel) ? `messages/${number}` : `values/${encode(ns)}/${encode(channel)}/${number}`;
}

/** Whether a branch is such a list of a namespace. The first branch of a thread stays. */
export function isListOf(ns, branch) {
  return branch.startsWith(`values/${encode(ns)}/`) || (ns === "" && branch.startsWith("messages/"));
}
