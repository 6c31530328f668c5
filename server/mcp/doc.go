// Package mcp offers a store to agents by the Model Context Protocol: tools to search and read earlier conversations and,
// where that is allowed, to fork and continue them; histories and documents as resources; prompts.
//
// A client reads within a scope (access.Scope), mostly the project that it works in. Text of one project may be an attack
// on the agent that reads it, so no tool, resource or completion reads or names anything outside the scope, whatever
// position, id or content is asked for. What is returned is marked as text of others. That is a hint to the model and not a
// boundary; the scope is one.
//
// Answers are bounded. Where there is more, they say how to ask for it.
package mcp
