// Reports what tests of node:test did in the form of vitest.
export default async function* (events) {
  const names = [];
  const files = new Map();
  for await (const { type, data } of events) {
    if (type === "test:start") names.splice(data.nesting, Infinity, data.name);
    if (!["test:pass", "test:fail"].includes(type) || data.details.type === "suite") continue;
    if (!files.has(data.file)) files.set(data.file, []);
    const left = data.skip !== undefined || data.todo !== undefined;
    const failed = type === "test:fail";
    const failureMessages = failed ? [String(data.details.error.cause?.stack ?? data.details.error)] : [];
    files.get(data.file).push({ fullName: names.slice(0, data.nesting + 1).join(" > "), status: failed ? "failed" : left ? "skipped" : "passed", failureMessages });
  }
  yield JSON.stringify({ testResults: [...files].map(([name, assertionResults]) => ({ name, message: "", assertionResults })) });
}
