package chat

import (
	"context"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ThreadReader reads one state of a thread as the chat that it is: with the ids and
// contents that a Store made by On answers. It serves those who copy chats
// elsewhere. It is not safe for concurrent use.
type ThreadReader struct{ reading *reading }

// NewThreadReader returns a reader of a thread in a state of a store. owned, when not nil,
// returns how many spans of a run, from its first on, may have the ids that they were added
// with. All others have ids that follow from the thread and the span, as earlier versions do.
func NewThreadReader(store *lineage.Store, from backend.Reader, t *structure.Thread, owned func(context.Context, structure.RunID) (uint64, error)) *ThreadReader {
	r := (&state{store: store, from: from}).reading(t)
	r.owned = owned
	return &ThreadReader{reading: r}
}

// IDOfThread returns the id of the chat that a thread is.
func IDOfThread(t *structure.Thread) string { return chatID(t.SourceID, t.ID) }

// Chat returns the chat.
func (r *ThreadReader) Chat(ctx context.Context) (Chat, error) {
	return r.reading.chatOf(ctx, r.reading.thread)
}

// SourceID returns the id that the message that a span is was added with, empty where there
// is none.
func (r *ThreadReader) SourceID(s *structure.Span) string {
	if u := sourced(s.Usages); u != nil {
		return u.SourceID
	}
	return ""
}

// MessageID returns the id of the message that a step is.
func (r *ThreadReader) MessageID(ctx context.Context, step *backend.Step) (string, error) {
	return r.reading.id(ctx, step.Span)
}

// IDAt returns the id of the message at a span, none for the empty position.
func (r *ThreadReader) IDAt(ctx context.Context, at structure.SpanRef) (Ref, error) {
	return r.reading.idAt(ctx, at)
}

// Message returns the message that a step is, which has its bodies. parent is the
// id of the one before it.
func (r *ThreadReader) Message(ctx context.Context, step *backend.Step, parent Ref) (Message, error) {
	return r.reading.message(ctx, step, parent)
}

// Branch returns a branch of the thread.
func (r *ThreadReader) Branch(ctx context.Context, b *structure.Branch) (Branch, error) {
	branch, _, err := r.reading.branchAt(ctx, b)
	return branch, err
}

// Checkpoint returns a checkpoint of the thread.
func (r *ThreadReader) Checkpoint(ctx context.Context, c *structure.Checkpoint) (Checkpoint, error) {
	return r.reading.checkpointAt(ctx, c)
}
