// Package engine holds the context engine: fragments, the atoms that a prompt
// is made of, and what becomes of them.
//
// A [Fragment] is a name with data, nested as deeply as needed. Context
// fragments (role, hint, …) are turned into a system prompt by a [Renderer];
// message fragments carry a [Codec] and become the conversation. A [UIMessage]
// is a structured message that keeps every byte it was decoded from, so that
// reading and saving a conversation never rewrites it.
package engine
