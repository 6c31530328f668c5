// Package conversation branches a conversation the way git branches work: fork
// it at any message, check branches out, merge and compare them.
//
// A [Conversation] is a view of a thread of a lineage store, found by a session id.
// It keeps no state of its own: any number of them, on one session and from many
// goroutines, see each other's changes and lose none. Forking copies no message.
//
//	conv, err := conversation.Open(ctx, store, "session-1", conversation.Options{})
//	err = conv.AddMessage(ctx, conversation.Message{Role: "user", Content: "Name a colour."})
//	fork, err := conv.Fork(ctx, "Another try")
//	_, err = conv.Checkout(ctx, conversation.Main)
//	_, err = conv.Merge(ctx, fork.ID, conversation.Append)
//
// # Branches
//
// A branch has an id, unique in its conversation, and a name for people, which need
// not be. The id is the name of a branch of the thread; the name for people and what
// the branch was made from are in the metadata of its context, as JSON. Branches that
// were made on the thread itself show here too, named after their id. Ids and session
// ids are any text, and never part of a path. Where a branch is read, an empty id stands for
// the current one.
//
// # Indexes
//
// A message index is a number of messages, from 0 to all of them: a branch made
// from another up to index n starts with its first n messages, as a slice [:n] would.
// Every message is a span of its own. Where others put several messages into one span of
// the thread, indexes and counts are of spans.
//
// # Branch files
//
// Package archive imports the files of other branch managers: a folder for each session, a JSON
// file for each branch. The session is then a conversation, with the names, parents and times of
// its branches. Export writes such files.
//
// # Errors
//
// Errors match the sentinels of package lineage: ErrNotFound for a branch that is not
// there, ErrExists for an id that is taken, ErrInvalid for an index out of range and a
// branch merged into itself, ErrProtected for deleting the main branch.
package conversation
