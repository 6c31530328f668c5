export default { test: { globals: true, include: ["test/*.test.js"], testTimeout: 120_000, hookTimeout: 120_000, maxWorkers: 1 } };
