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
type ThreadReader struct {
	reading *reading
	thread  *structure.Thread
}

// NewThreadReader returns a reader of a thread in a state of a store.
func NewThreadReader(store *lineage.Store, state backend.Reader, t *structure.Thread) *ThreadReader {
	return &ThreadReader{reading: newReading(store, state, t), thread: t}
}

// IDOfThread returns the id of the chat that a thread is.
func IDOfThread(t *structure.Thread) string { return chatID(t.SourceID, t.ID) }

// Chat returns the chat.
func (r *ThreadReader) Chat(ctx context.Context) (Chat, error) {
	t := r.thread
	updated, err := backend.UpdatedAt(ctx, r.reading.from, t)
	return Chat{
		ID: r.reading.chatID, UserID: t.UserID, Title: t.Title, Metadata: t.Metadata,
		CreatedAt: t.CreatedAt.UnixMilli(), UpdatedAt: updated.UnixMilli(),
	}, err
}

// Owned returns how many spans of a run, from its first on, are messages that were
// added to this chat as such: they have the ids that their callers chose. All others
// have ids that follow from the thread and the span.
func (r *ThreadReader) Owned(ctx context.Context, run structure.RunID) (uint64, error) {
	in, err := r.reading.strand(ctx, run)
	if err != nil || in.thread != r.reading.thread {
		return 0, err
	}
	return in.last.Seq, nil
}

// MessageID returns the id of the message that a step is.
func (r *ThreadReader) MessageID(ctx context.Context, step *backend.Step) (string, error) {
	id, _, err := r.reading.id(ctx, step)
	return id, err
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
	branch, _, err := r.reading.branch(ctx, r.thread, b)
	return branch, err
}

// Checkpoint returns a checkpoint of the thread.
func (r *ThreadReader) Checkpoint(ctx context.Context, c *structure.Checkpoint) (Checkpoint, error) {
	id, err := checkpointID(ctx, r.reading.from, c.ID)
	if err != nil {
		return Checkpoint{}, err
	}
	message, err := r.reading.idAt(ctx, c.Span)
	return Checkpoint{
		ID: id, ChatID: r.reading.chatID, Name: c.Name, MessageID: string(message), CreatedAt: c.CreatedAt.UnixMilli(),
	}, err
}
