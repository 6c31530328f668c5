// A program outside of the clone installs the client as the documentation says, and loads every entry point.
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const page = await readFile(join(process.env.LINEAGE_DOCS, "frameworks.md"), "utf8");
const client = join(import.meta.dirname, "..");
const modules = join(client, "..", "node_modules");

it("is installed in a program of one's own", async () => {
  const dir = await realpath(await mkdtemp(join(tmpdir(), "install-")));
  try {
    const clone = join(dir, "clone", "clients", "js");
    await cp(client, clone, { recursive: true });
    const cwd = join(dir, "own", "program");
    await mkdir(cwd, { recursive: true });
    await symlink(modules, join(dir, "own", "node_modules")); // the packages of frameworks
    const { exports } = JSON.parse(await readFile(join(client, "package.json"), "utf8"));
    const entries = Object.keys(exports).map((name) => `@lineage-store/client${name.slice(1)}`);
    for (const name of entries) expect(page).toContain(`| \`${name}\` |`);
    await writeFile(join(cwd, "package.json"), '{"private":true}');
    await writeFile(join(cwd, "program.mjs"), entries.map((name) => `await import("${name}");\n`).join(""));
    const [, words] = /^npm (install .*)PATH\/clients\/js FRAMEWORK-PACKAGES$/m.exec(page);
    await run("npm", [...words.trim().split(" "), clone, "--offline", "--no-audit", "--no-fund", "--cache", join(dir, "cache")], { cwd });
    await run(process.execPath, ["program.mjs"], { cwd });
  } finally {
    await rm(dir, { recursive: true });
  }
});

it("names the packages with the versions that are tested", async () => {
  const packages = [...page.matchAll(/`(@?[a-z\/-]+)@(\d[^`]*)`/g)];
  expect(packages).toHaveLength(7);
  for (const [, name, version] of packages) expect(JSON.parse(await readFile(join(modules, name, "package.json"), "utf8")).version, name).toBe(version);
});
