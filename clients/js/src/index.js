export { Client, Context, Thread, connect } from "./client.js";
export { ConnectionError, LineageError, is } from "./errors.js";
export { findServer, findServers } from "./find.js";
