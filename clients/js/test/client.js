// The client of the server that the tests run with, in two instances as of two processes.
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "@lineage-store/client";

const at = { store: process.env.LINEAGE_STORE, runtime: process.env.LINEAGE_RUNTIME };
export const client = await connect(at);
export const other = await connect(at);

/** A generator of random numbers: integers below n. */
export function random(seed) {
  let state = seed >>> 0;
  return (n) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

export async function collect(all) {
  const items = [];
  for await (const item of all) items.push(item);
  return items;
}

/** How many bytes the store has written: its files are longer, by zeros. */
export async function written() {
  const journal = join(process.env.LINEAGE_STORE, "journal");
  let all = 0;
  for (const name of await readdir(journal)) {
    const bytes = await readFile(join(journal, name));
    all += bytes.findLastIndex((b) => b !== 0) + 1;
  }
  return all;
}
