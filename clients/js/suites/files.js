// Runs files of tests for node:test in one process.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

for (const name of process.argv.slice(2)) await import(pathToFileURL(resolve(name)));
