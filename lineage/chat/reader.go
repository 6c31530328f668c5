package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// ThreadReader reads one state of a thread as a chat, with the same ids and contents as a Store returned by On. It is
// also for code that copies chats elsewhere. It is not safe for concurrent use.
type ThreadReader struct {
	*state
	thread *structure.Thread
	// home caches for runs whether they belong to the chat.
	home     map[structure.RunID]bool
	messages *form.Reader
	// exact refuses messages whose form is damaged. Otherwise their pieces are returned.
	exact bool
	// owned, when not nil, returns the number of spans of a run that may have ids of their own.
	owned func(context.Context, structure.RunID) (uint64, error)
	// later, when not nil, has the ids of messages that have later versions: see foresee.
	later map[string]bool
}

// NewThreadReader returns a reader of a thread in a state of a store. owned, when not nil, returns how many spans of
// a run, from the first on, may have the ids that they were added with. All other messages have ids derived from the
// thread and the span, as earlier versions have.
func NewThreadReader(store *lineage.Store, from backend.Reader, t *structure.Thread, owned func(context.Context, structure.RunID) (uint64, error)) *ThreadReader {
	r := (&state{store: store, from: from}).reading(t)
	r.owned = owned
	return r
}

func (s *state) reading(t *structure.Thread) *ThreadReader {
	return &ThreadReader{state: s, thread: t, home: make(map[structure.RunID]bool), messages: form.NewReader(s.from)}
}

// sourceOf returns the id with which the message of some usages was added, empty if it has none, and the number of
// its version.
func sourceOf(usages []structure.Usage) (id string, version uint64) {
	for i := range usages {
		if u := &usages[i]; u.SourceID != "" && u.Lookup > 0 {
			return u.SourceID, u.Lookup
		}
	}
	return "", 0
}

// SourceID returns the id with which the message at a span was added, empty if it has none.
func (r *ThreadReader) SourceID(s *structure.Span) string {
	id, _ := sourceOf(s.Usages)
	return id
}

// MessageID returns the id of the message at a step. It is the id with which the message was added to this chat, if
// the step is the latest version of the message.
func (r *ThreadReader) MessageID(ctx context.Context, step *backend.Step) (string, error) {
	if id := r.SourceID(step.Span); id != "" {
		own, err := r.isOwn(ctx, id, step.Span.Ref)
		if own || err != nil {
			return id, err
		}
	}
	return foreignID(r.thread.ID, step.Span.Ref), nil
}

func (r *ThreadReader) isOwn(ctx context.Context, id string, at structure.SpanRef) (bool, error) {
	if r.owned != nil {
		if n, err := r.owned(ctx, at.Run); err != nil || at.Seq > n {
			return false, err
		}
	}
	home, err := r.isHome(ctx, at.Run)
	if err != nil || !home || !r.thread.Keeps {
		return home, err // only threads that keep their messages have versions
	}
	if r.later != nil && !r.later[id] {
		return true, nil
	}
	found, err := backend.FindFirst(ctx, r.from, id, r.thread.ID)
	return err == nil && found.Span == at, ignoreNotFound(err)
}

// isHome reports whether a run belongs to the chat.
func (r *ThreadReader) isHome(ctx context.Context, run structure.RunID) (bool, error) {
	home, known := r.home[run]
	if !known {
		is, err := r.from.Run(ctx, run)
		if err != nil {
			return false, err
		}
		home = is.Home == r.thread.Home()
		r.home[run] = home
	}
	return home, nil
}

// IDAt returns the id of the message at a span, empty for the zero ref.
func (r *ThreadReader) IDAt(ctx context.Context, at structure.SpanRef) (Ref, error) {
	if at.IsZero() {
		return "", nil
	}
	step, err := r.step(ctx, at, backend.PathOptions{})
	if err != nil {
		return "", err
	}
	id, err := r.MessageID(ctx, step)
	return Ref(id), err
}

// Chat returns the chat.
func (r *ThreadReader) Chat(ctx context.Context) (Chat, error) { return r.chatOf(ctx, r.thread) }

// step returns a span.
func (s *state) step(ctx context.Context, at structure.SpanRef, o backend.PathOptions) (last *backend.Step, err error) {
	for last, err = range s.from.Path(ctx, at, structure.Window{Last: 1}, o) {
		// There is only one.
	}
	return last, err
}

// Message returns the message at a step, which must have been read with its bodies. parent is the id of the previous
// message.
func (r *ThreadReader) Message(ctx context.Context, step *backend.Step, parent Ref) (Message, error) {
	id, err := r.MessageID(ctx, step)
	if err != nil {
		return Message{}, err
	}
	m, err := r.tell(ctx, step, id)
	m.ChatID, m.ParentID = IDOfThread(r.thread), parent
	return m, err
}

// MessageAt returns the message at a span.
func (r *ThreadReader) MessageAt(ctx context.Context, at structure.SpanRef) (m Message, err error) {
	for m, err = range r.chain(ctx, at, structure.Window{Last: 2}) {
		// The last one is the message, with its parent.
	}
	return m, err
}

// whole yields the messages of the history that ends at a span.
func (r *ThreadReader) whole(ctx context.Context, at structure.SpanRef) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		length, err := r.store.Position(ctx, at)
		if err == nil {
			err = r.foresee(ctx, length)
		}
		if err != nil {
			yield(Message{}, err)
			return
		}
		r.chain(ctx, at, structure.Window{})(yield)
	}
}

// chain yields the messages in a window of the history that ends at a span. The first one has no parent.
func (r *ThreadReader) chain(ctx context.Context, at structure.SpanRef, w structure.Window) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		parent := Ref("")
		for step, err := range r.from.Path(ctx, at, w, backend.PathOptions{Bodies: true}) {
			var m Message
			if err == nil {
				m, err = r.Message(ctx, step, parent)
			}
			if !yield(m, err) || err != nil {
				return
			}
			parent = Ref(m.ID)
		}
	}
}

// tell returns the message at a step, with an id.
func (r *ThreadReader) tell(ctx context.Context, step *backend.Step, id string) (Message, error) {
	u := &step.Span.Usages[0]
	m := Message{ID: id, Name: roleOf(step), CreatedAt: u.CreatedAt.UnixMilli(), Origin: originOf(step)}
	var err error
	if m.Type, err = r.typeOf(ctx, u); err == nil {
		m.Data, err = r.data(ctx, step, id)
	}
	if err != nil {
		return Message{}, fmt.Errorf("message %q: %w", id, err)
	}
	return m, nil
}

// typeMetadata returns the metadata of a message's usage. Only messages of an unusual type have any.
func typeMetadata(of string) []byte {
	b, _ := json.Marshal(map[string]string{"type": of}) // a string always marshals
	return b
}

// typeOf returns the type of the message of a usage. If its metadata was erased, it is TypeMessage.
func (r *ThreadReader) typeOf(ctx context.Context, u *structure.Usage) (string, error) {
	metadata, err := r.messages.Metadata(ctx, u)
	of := rawjson.Str(rawjson.Get(metadata, "type"))
	if metadata == nil || !bytes.Equal(metadata, typeMetadata(of)) {
		return TypeMessage, err // the metadata was not written by this package
	}
	return of, nil
}
