// Package mcp offers a store to agents by the Model Context Protocol: tools to search and read earlier conversations
// and, where that is allowed, to fork and continue them; histories and documents as resources; prompts.
//
// A client reads within a scope (access.Scope), usually the project in which it works. Text of one project may be an
// attack on the agent that reads it. So no tool, resource or completion reads or names anything outside the scope,
// whatever position, id or content is requested. Returned text is marked as text of others. The mark is only a hint
// to the model; the boundary is the scope.
//
// Answers are limited in size. If there is more, they state how to get it.
package mcp
