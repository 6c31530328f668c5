// The suites are written for the test runner of Bun.
import config from "../vitest.config.js";

export default { test: { ...config.test, include: ["suites/*.suite.js"] }, resolve: { alias: { "bun:test": "vitest" } } };
