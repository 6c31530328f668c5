package chat

import (
	"cmp"

	"github.com/lineage-store/lineage/structure"
)

// Any thread can be read as a chat, also one that was not written by this package. A thread without a source id has
// its thread id as chat id. A span that has no message id in the chat becomes a message with the id that foreignID
// returns. Such a span was added without a source id, belongs to another thread, or is an earlier version of a
// message.

// IDOfThread returns the chat id of a thread.
func IDOfThread(t *structure.Thread) string { return cmp.Or(t.SourceID, t.ID.String()) }

// foreignID returns the message id of a span that has no message id in the chat of a thread.
func foreignID(thread structure.ThreadID, at structure.SpanRef) string {
	return thread.String() + "/" + at.String()
}
