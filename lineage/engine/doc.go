// Package engine manages conversations with a model: instructions, messages, and the branches of a
// chat.
//
// # Fragments
//
// A [Fragment] is a name with data, nested to any depth. Context fragments (role, hint, …) are
// turned into a system prompt by a [Renderer]; message fragments have a [Codec] and become the
// conversation. A [UIMessage] is a structured message that keeps every byte it was decoded from, so
// that reading and saving a conversation does not rewrite it.
//
// # The engine
//
// An [Engine] works on a branch of a chat in any chat.Store: an embedded one (chat.On) or one in a
// database. Set adds fragments, Resolve returns the prompt and the messages to send, and Save
// appends the pending messages to the branch, all or none. Context is not stored: set it each time
// a chat is opened.
//
// [Fragment.From] sets the model of a message. The user of a message is that of the chat unless the
// message names another. A new version of a message is derived from the old one.
//
// Replace and Remove change unsaved fragments, context and messages. To work on a branch that is
// not active, open a separate engine: see [Options]. NameBranch of lineage.Thread makes a context
// of a thread a branch.
//
// Messages are immutable, so nothing that was saved is lost:
//
//   - saving an unchanged message again does nothing;
//   - saving a new version of a message creates a branch next to the old one;
//   - Rewind and Restore create a branch that ends with an earlier message or that of
//     a checkpoint, switch to it, and drop pending messages;
//   - Aside creates a branch for a side question, without switching to it, and keeps
//     pending messages;
//   - SwitchBranch switches to an existing branch and drops pending messages.
//
// The engine names a new branch after the one it is created from: main-v2, main-v3, and from
// main-v2, main-v2-v2.
//
// # Concurrency
//
// Engines on one branch, in any number of processes, do not lose each other's turns: a save
// continues the current end of the branch. The messages of one Save stay together. An engine stays
// on its branch when another one activates a different branch; chats opened later start on the
// active one.
//
// # Models
//
// Resolve reads every stored message with Options.Decode or with package message, whatever program
// wrote it. The result is UI messages, or with [Resolved.Encode] the format of a provider's API.
// ResolveOptions limit the number of messages or tokens.
//
// # Errors
//
// Errors about a chat, branch, message or checkpoint are a *chat.Error that names it and matches
// chat.ErrNotFound, chat.ErrOtherChat, chat.ErrOtherUser, chat.ErrNoUser, chat.ErrInvalid or
// [ErrNoMessages]. A failed operation does not change the engine or its pending messages.
package engine
