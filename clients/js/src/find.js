import { lstat, open, readdir, realpath } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, resolve, sep } from "node:path";
import { ConnectionError } from "./errors.js";
import { dial } from "./socket.js";

const maxFile = 64 << 10;

/** The folder in which the servers of this user are found. */
export function runtimeDir(env = process.env) {
  if (env.XDG_RUNTIME_DIR && isAbsolute(env.XDG_RUNTIME_DIR)) return join(env.XDG_RUNTIME_DIR, "lineage");
  return join(cacheDir(env), "lineage", "run");
}

function cacheDir(env) {
  if (process.platform === "win32") return env.LocalAppData ?? join(homedir(), "AppData", "Local");
  if (process.platform === "darwin") return join(env.HOME ?? homedir(), "Library", "Caches");
  if (env.XDG_CACHE_HOME && isAbsolute(env.XDG_CACHE_HOME)) return env.XDG_CACHE_HOME;
  return join(env.HOME ?? homedir(), ".cache");
}

/**
 * Finds the servers of this user on this machine, the newest first. With a store (a folder, or the address of a store on
 * PostgreSQL as `lineage serve` prints it) only those of it.
 */
export async function findServers({ store, runtime = runtimeDir() } = {}) {
  const wanted = store === undefined ? undefined : await canonical(store);
  let names;
  try {
    if (!(await isPrivate(runtime))) return [];
    names = await readdir(runtime);
  } catch (err) {
    if (err.code === "ENOENT") return [];
    throw err;
  }
  const found = [];
  for (const name of names.filter((n) => n.endsWith(".json"))) {
    const server = await readServer(runtime, name);
    if (server === undefined) continue;
    if (wanted !== undefined && (await canonical(server.store)) !== wanted) continue;
    if (server.socket === undefined || (await listens(server.socket).catch(() => false))) found.push(server);
  }
  return found.sort((a, b) => (a.started < b.started ? 1 : -1));
}

/** The folder is of this user, and no other can put a file there. */
async function isPrivate(dir) {
  const info = await lstat(dir);
  if (!info.isDirectory()) return false;
  return process.getuid === undefined || (info.uid === process.getuid() && (info.mode & 0o022) === 0);
}

async function readServer(dir, name) {
  let file;
  try {
    file = await open(join(dir, name));
    const { bytesRead, buffer } = await file.read(Buffer.alloc(maxFile), 0, maxFile, 0);
    const is = JSON.parse(buffer.toString("utf8", 0, bytesRead));
    if (is === null || typeof is !== "object" || typeof is.store !== "string" || typeof is.url !== "string") return undefined;
    const socket = is.socket;
    // The socket is in the same folder.
    if (socket !== undefined && (typeof socket !== "string" || !socket.endsWith(".sock") || /[/\\]/.test(socket))) return undefined;
    return {
      store: is.store,
      url: is.url,
      socket: socket && join(dir, socket),
      pid: is.pid,
      readOnly: is.read_only === true,
      started: String(is.started),
    };
  } catch {
    return undefined; // it ended meanwhile, or is no such file
  } finally {
    await file?.close();
  }
}

function listens(socket) {
  return new Promise((done) => {
    const c = dial(socket);
    c.once("connect", () => (c.destroy(), done(true)));
    c.once("error", () => done(false));
  });
}

async function canonical(store) {
  if (/^postgres(ql)?:/.test(store)) return store;
  const path = resolve(store === "~" || store.startsWith(`~${sep}`) || store.startsWith("~/") ? homedir() + store.slice(1) : store);
  return realpath(path).catch(() => path);
}

/** Finds the server of a store; one that may be changed, if there is one. */
export async function findServer(options) {
  const all = await findServers(options);
  const server = all.find((s) => !s.readOnly) ?? all[0];
  if (server === undefined) {
    const of = options?.store === undefined ? "" : ` for the store ${options.store}`;
    throw new ConnectionError(`no server runs${of}\nstart one: lineage serve${options?.store === undefined ? "" : ` --store ${options.store}`}`);
  }
  return server;
}
