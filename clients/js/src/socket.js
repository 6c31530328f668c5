import { closeSync, openSync } from "node:fs";
import * as http from "node:http";
import { connect } from "node:net";
import { basename, dirname } from "node:path";

/** The length of a path, in bytes, that every system accepts for a socket. Node cuts what is longer than the system accepts. */
const maxPath = 100;

/** Connects to a socket. Linux reaches one with a longer path through its open folder. */
export function dial(path) {
  if (process.platform === "win32" || Buffer.byteLength(path) <= maxPath) return connect({ path });
  if (process.platform !== "linux") throw new Error(`socket ${path}: its path is longer than ${maxPath} bytes`);
  const dir = openSync(dirname(path), "r");
  const socket = connect({ path: `/proc/self/fd/${dir}/${basename(path)}` });
  let opened = true;
  const close = () => opened && ((opened = false), closeSync(dir));
  return socket.once("connect", close).once("close", close);
}

/** An agent whose requests are sent to a socket. */
export class SocketAgent extends http.Agent {
  #path;

  constructor(path, options) {
    super(options);
    this.#path = path;
  }

  createConnection(_, done) {
    try {
      return dial(this.#path);
    } catch (err) {
      return void done(err);
    }
  }
}
