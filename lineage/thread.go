package lineage

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// MainBranch is the name of the branch that a thread starts with.
const MainBranch = "main"

// Thread is a conversation with its branches. The value is a handle that may be
// copied and kept. It goes by the thread's id: where a thread was deleted and another
// made under the same source id, it is the other's.
type Thread struct {
	store *Store
	id    ThreadID
}

// ThreadOptions describe a new thread.
type ThreadOptions struct {
	// SourceID is an id of the caller's choice, unique in the store: see
	// Store.FindThread.
	SourceID string
	UserID   string
	Title    string
	// Metadata is JSON of the caller's, kept byte for byte.
	Metadata []byte
	// Overrides are those of the main branch.
	Overrides Overrides
	// CreatedAt and UpdatedAt default to now. A thread that comes from elsewhere keeps its
	// place in listings with its own times.
	CreatedAt, UpdatedAt time.Time
}

// ThreadInfo is a thread as it is now.
type ThreadInfo struct {
	ID       ThreadID
	SourceID string
	UserID   string
	Title    string
	Metadata []byte
	// Active is the context of the active branch.
	Active    ContextID
	CreatedAt time.Time
	// UpdatedAt is when the thread was last changed or got a message, whichever is later.
	// Messages count by their own times.
	UpdatedAt time.Time
	// LastMessage is the time of the latest message that was added to the thread, on
	// whichever branch or on none. It is zero if there is none.
	LastMessage time.Time
}

// ID returns the thread's id.
func (t *Thread) ID() ThreadID { return t.id }

// SourceThread returns the id of the thread with a source id, whether or not there
// is one.
func SourceThread(sourceID string) ThreadID {
	return structure.DeriveID[ThreadID]("thread", sourceID)
}

// CreateThread makes a thread with an empty, active main branch. A source id that
// is taken is ErrExists.
func (s *Store) CreateThread(ctx context.Context, o ThreadOptions) (*Thread, error) {
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, err
	}
	id := structure.NewID[ThreadID]()
	if o.SourceID != "" {
		id = SourceThread(o.SourceID)
	}
	now := s.timestamp()
	if o.CreatedAt.IsZero() {
		o.CreatedAt = now
	}
	if o.UpdatedAt.IsZero() {
		o.UpdatedAt = now
	}
	main := structure.NewID[ContextID]()
	thread := &structure.Thread{
		ID: id, SourceID: o.SourceID, UserID: o.UserID, Title: o.Title, Metadata: o.Metadata,
		CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt, Incarnation: structure.NewIncarnation(),
	}
	active := *thread
	active.Active = main
	_, err := s.engine.Apply(ctx, &structure.Commit{Time: s.now(), Records: []structure.Record{
		thread, // the context needs it to exist, and it the context
		&structure.Context{ID: main, Thread: id, Overrides: o.Overrides, CreatedAt: now},
		&structure.Branch{Thread: id, Name: MainBranch, Context: main, CreatedAt: now},
		&active,
	}}, backend.Options{Threads: []backend.ExpectThread{{ID: id}}})
	if err != nil {
		if o.SourceID != "" && errors.Is(err, ErrExists) {
			return nil, subjectError("thread", o.SourceID, ErrExists, "")
		}
		return nil, err
	}
	return &Thread{store: s, id: id}, nil
}

// Thread returns the thread with an id.
func (s *Store) Thread(ctx context.Context, id ThreadID) (*Thread, error) {
	if _, err := s.engine.Thread(ctx, id); err != nil {
		return nil, err
	}
	return &Thread{store: s, id: id}, nil
}

// FindThread returns the thread that was made with a source id.
func (s *Store) FindThread(ctx context.Context, sourceID string) (*Thread, error) {
	t, err := s.Thread(ctx, SourceThread(sourceID))
	if isNotFound(err) {
		return nil, subjectError("thread", sourceID, ErrNotFound, "")
	}
	return t, err
}

// Info returns the thread as it is now.
func (t *Thread) Info(ctx context.Context) (ThreadInfo, error) {
	r, err := t.store.engine.Thread(ctx, t.id)
	if err != nil {
		return ThreadInfo{}, err
	}
	last, err := t.store.engine.LastMessage(ctx, r.Home())
	return infoOf(backend.ThreadListing{Thread: r, LastMessage: last}), err
}

func threadInfo(r *structure.Thread) *ThreadInfo {
	return &ThreadInfo{
		ID: r.ID, SourceID: r.SourceID, UserID: r.UserID, Title: r.Title, Metadata: r.Metadata,
		Active: r.Active, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Update changes a thread's title, metadata and user. What change leaves alone
// stays. It may be called more than once if others change the thread meanwhile.
func (t *Thread) Update(ctx context.Context, change func(*ThreadInfo)) error {
	return t.change(ctx, func(r *structure.Thread) ([]structure.Record, error) {
		info := threadInfo(r)
		change(info)
		if err := checkChanged("thread", t.id.String(), "metadata", r.Metadata, info.Metadata); err != nil {
			return nil, err
		}
		r.Title, r.Metadata, r.UserID = info.Title, info.Metadata, info.UserID
		return nil, nil
	})
}

// change states a thread anew, with other records in the same commit. make is
// called again if the thread changed meanwhile.
func (t *Thread) change(ctx context.Context, make func(*structure.Thread) ([]structure.Record, error), tips ...backend.Expect) error {
	for {
		was, err := t.store.engine.Thread(ctx, t.id)
		if err != nil {
			return err
		}
		is := *was
		if _, err := t.store.engine.Context(ctx, is.Active); isNotFound(err) {
			is.Active = ContextID{} // it was deleted: a thread cannot be stated with it
		}
		records, err := make(&is)
		if err != nil {
			// It may have been made for a state that passed while it was made.
			if now, again := t.store.engine.Thread(ctx, t.id); again == nil && !now.UpdatedAt.Equal(was.UpdatedAt) {
				continue
			}
			return err
		}
		// Later than before in any case: a state that has passed never comes back.
		if is.UpdatedAt = t.store.timestamp(); !is.UpdatedAt.After(was.UpdatedAt) {
			is.UpdatedAt = was.UpdatedAt.Add(time.Millisecond)
		}
		_, err = t.store.engine.Apply(ctx, &structure.Commit{Time: t.store.now(), Records: append(records, &is)},
			backend.Options{Threads: []backend.ExpectThread{{ID: t.id, Was: was}}, Tips: tips})
		if !isChanged(err, "thread") {
			return tipMoved(err)
		}
	}
}

// isChanged reports whether a commit was refused because a thread or context is not as it
// was.
func isChanged(err error, subject string) bool {
	var is *SubjectError
	return errors.As(err, &is) && is.Subject == subject && errors.Is(err, ErrConflict)
}

// Delete takes the thread out of the store with its branches, contexts and
// checkpoints. What other threads share with it stays theirs; what they do not
// leaves the store's files with the next Collect.
func (t *Thread) Delete(ctx context.Context) error {
	return t.DeleteIf(ctx, func(*ThreadInfo) error { return nil })
}

// DeleteIf is Delete unless may refuses the thread as it is then, with an error that is
// returned. It may be called more than once if others change the thread meanwhile.
func (t *Thread) DeleteIf(ctx context.Context, may func(*ThreadInfo) error) error {
	all := func(ctx context.Context, from backend.Reader) iter.Seq2[backend.Context, error] {
		return from.Contexts(ctx, t.id, structure.ContextID{})
	}
	mayNow := func() error {
		is, err := t.store.engine.Thread(ctx, t.id)
		if err != nil {
			return err
		}
		return may(threadInfo(is))
	}
	return t.store.bequeath(ctx, all, t.id, mayNow, func() error {
		for {
			was, err := t.store.engine.Thread(ctx, t.id)
			if err != nil {
				return err
			}
			if err := may(threadInfo(was)); err != nil {
				return err
			}
			_, err = t.store.engine.Apply(ctx, &structure.Commit{Time: t.store.now(), Records: []structure.Record{
				&structure.Deletion{Subject: structure.KindThread, Thread: t.id, At: t.store.timestamp()},
			}}, backend.Options{Threads: []backend.ExpectThread{{ID: t.id, Was: was}}})
			if !isChanged(err, "thread") {
				return err
			}
		}
	})
}

// Contexts yields the thread's contexts, those without a name included, oldest
// first.
func (t *Thread) Contexts(ctx context.Context) iter.Seq2[*Context, error] {
	return t.store.handles(t.store.engine.Contexts(ctx, t.id, structure.ContextID{}))
}

// Find returns the entry that was added to the thread with a source id, on whichever
// history of it. Context.Find looks on one.
func (t *Thread) Find(ctx context.Context, sourceID string) (*Entry, error) {
	if _, err := t.store.engine.Thread(ctx, t.id); err != nil {
		return nil, err
	}
	found, err := backend.FindFirst(ctx, t.store.engine, sourceID, t.id)
	if isNotFound(err) {
		return nil, subjectError("message", sourceID, ErrNotFound, "in thread "+t.id.String())
	}
	if err != nil {
		return nil, err
	}
	entries, err := t.store.Span(ctx, found.Span)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.SourceID == sourceID {
			return e, nil
		}
	}
	return nil, subjectError("message", sourceID, ErrNotFound, "in thread "+t.id.String())
}
