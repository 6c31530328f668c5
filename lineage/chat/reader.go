package chat

import (
	"context"

	"github.com/lineage-store/lineage/internal/form"
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
	// laterVersions, when not nil, has the ids of messages that have later versions: see findLaterVersions.
	laterVersions map[string]bool
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
	if err != nil || !home {
		return false, err
	}
	if r.laterVersions != nil && !r.laterVersions[id] {
		return true, nil
	}
	found, err := backend.FindFirst(ctx, r.from, id, r.thread.ID)
	return err == nil && found.Span == at, ignoreNotFound(err)
}

// isHome reports whether a run belongs to the chat.
func (r *ThreadReader) isHome(ctx context.Context, run structure.RunID) (bool, error) {
	home, known := r.home[run]
	if !known {
		info, err := r.from.Run(ctx, run)
		if err != nil {
			return false, err
		}
		home = info.Home == r.thread.Home()
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

// step returns a span.
func (s *state) step(ctx context.Context, at structure.SpanRef, o backend.PathOptions) (last *backend.Step, err error) {
	for last, err = range s.from.Path(ctx, at, structure.Window{Last: 1}, o) {
		// There is only one.
	}
	return last, err
}
