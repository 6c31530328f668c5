// Package engine manages conversations with a model: its instructions, the messages, and the
// branches that a chat takes.
//
// # Fragments
//
// A [Fragment] is a name with data, nested as deeply as needed. Context fragments
// (role, hint, …) are turned into a system prompt by a [Renderer]; message fragments
// carry a [Codec] and become the conversation. A [UIMessage] is a structured message
// that keeps every byte it was decoded from, so that reading and saving a
// conversation never rewrites it.
//
// # The engine
//
// An [Engine] is on a branch of a chat in any chat.Store: the embedded one, by
// chat.On, or one in a database. Set adds fragments, Resolve returns the prompt and
// the messages to send, and Save appends what is pending to the branch, all of it or
// nothing. Context is not kept: set it whenever a chat is opened.
//
// A message states the model that made it by [Fragment.From]; its user is that of the chat
// unless it states another. A new version of a message is derived from it.
//
// Replace and Remove change what was set and not saved, context and messages alike. A branch that
// is not the active one is worked on by an engine of its own: see [Options]. A context of a thread
// becomes a branch by NameBranch of lineage.Thread.
//
// Messages are immutable, so nothing that was saved is ever lost:
//
//   - saving a message again as it is changes nothing;
//   - saving a new version of a message makes a branch beside the old one;
//   - Rewind and Restore make a branch that ends with an earlier message or with
//     that of a checkpoint, go there, and drop what is pending;
//   - Aside makes a branch for a question by the way, does not go there, and keeps
//     what is pending;
//   - SwitchBranch goes to a branch that is there, and drops what is pending.
//
// A branch that the engine makes is called after the one it is made from: main-v2,
// main-v3, and from main-v2, main-v2-v2.
//
// # Several at once
//
// Engines on one branch, in any number of processes, lose no turn of each other: a save
// follows whatever the branch ends with by then. A turn, being what one Save saves, stays
// together. An engine stays on its branch when another one activates a different one; opening
// the chat after that starts on that branch.
//
// # Models
//
// Resolve reads any stored message, whatever wrote it, as package message does, or with
// Options.Decode. The result is UI messages, and by [Resolved.Encode] what the API of a provider
// accepts. ResolveOptions bound it to the last messages or to a number of tokens.
//
// # Errors
//
// Errors about a chat, branch, message or checkpoint are a *chat.Error, which names
// it and matches chat.ErrNotFound, chat.ErrOtherChat, chat.ErrOtherUser,
// chat.ErrInvalid or [ErrNoMessages]. An operation that fails leaves the engine as it
// was, its pending messages included.
package engine
