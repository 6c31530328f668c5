// Loaded before programs that give up after some seconds: their timers wait thirty times as long, so that a busy machine
// fails none of them.
import { promisify } from 'node:util';

const longer = (delay) => Math.min(delay * 30, 2 ** 31 - 1);
const set = globalThis.setTimeout;
globalThis.setTimeout = (call, delay = 0, ...args) => set(call, longer(delay), ...args);
globalThis.setTimeout[promisify.custom] = set[promisify.custom];
const abort = AbortSignal.timeout.bind(AbortSignal);
AbortSignal.timeout = (delay) => abort(longer(delay));
