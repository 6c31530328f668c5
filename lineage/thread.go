package lineage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/write"
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
	// Reuse returns the thread that has the source id already, as it is, where there is one. Of several callers at
	// the same time one makes it.
	Reuse  bool
	UserID string
	Title  string
	// Metadata is JSON of the caller's, kept byte for byte.
	Metadata []byte
	// Overrides are those of the main branch.
	Overrides Overrides
	// Keep makes every message that is added to the thread stay as long as the thread,
	// also where no context leads there any more.
	Keep bool
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
	Active ContextID
	// Keeps says that its messages stay as long as the thread: see ThreadOptions.Keep.
	Keeps     bool
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

// CreateThread makes a thread with an empty, active main branch. A source id that
// is taken is ErrExists, unless ThreadOptions.Reuse is set.
func (s *Store) CreateThread(ctx context.Context, o ThreadOptions) (*Thread, error) {
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, err
	}
	if o.Reuse && o.SourceID == "" {
		return nil, fmt.Errorf("thread to reuse without a source id: %w", ErrInvalid)
	}
	var made *structure.Thread
	err := s.change(ctx, func(b *write.Batch, t write.Try) error {
		if o.Reuse {
			is, err := s.engine.Thread(ctx, write.SourceThread(o.SourceID))
			if made = is; !isNotFound(err) {
				return err
			}
		}
		if t.Taken("thread") && !o.Reuse {
			return t.Err
		}
		made = b.NewThread(write.Thread{
			SourceID: o.SourceID, UserID: o.UserID, Title: o.Title, Metadata: o.Metadata, Keeps: o.Keep, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
		})
		main := b.NewContext(write.Context{Thread: made.ID, Overrides: o.Overrides})
		b.Branch(made.ID, MainBranch, "", main.ID, b.Time())
		// The context needs the thread to exist, and the thread the context.
		active := *made
		active.Active = main.ID
		b.StateThread(active)
		return nil
	})
	if err != nil {
		if o.SourceID != "" && errors.Is(err, ErrExists) {
			return nil, subjectError("thread", o.SourceID, ErrExists, "")
		}
		return nil, err
	}
	return &Thread{store: s, id: made.ID}, nil
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
	t, err := s.Thread(ctx, write.SourceThread(sourceID))
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
		Active: r.Active, Keeps: r.Keeps, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Update changes the title, metadata and user of a thread, and whether it keeps its messages. What change leaves alone
// stays, and if it leaves everything alone or returns an error nothing happens; setting UpdatedAt to whatever time makes
// the thread one that was updated now. It may be called more than once if others change the thread meanwhile.
//
// A thread without a user can be given one. A thread that has one keeps it (ErrOtherUser): messages that state no user
// were said by the user of their thread.
func (t *Thread) Update(ctx context.Context, change func(*ThreadInfo) error) error {
	return t.change(ctx, func(_ *write.Batch, r *structure.Thread) error {
		info := threadInfo(r)
		if err := change(info); err != nil {
			return err
		}
		if r.UserID != "" && info.UserID != r.UserID {
			return subjectError("thread", t.id.String(), ErrOtherUser, "")
		}
		r.Title, r.UserID, r.Keeps, r.UpdatedAt = info.Title, info.UserID, info.Keeps, info.UpdatedAt
		was := r.Metadata
		r.Metadata = info.Metadata
		return checkChanged("thread", t.id.String(), "metadata", was, r.Metadata)
	})
}

// change states a thread anew, with what else fill puts into the commit, if that changes
// anything. No two changes are
// made for one state of a thread, so fill may rely on what it finds in it.
func (t *Thread) change(ctx context.Context, fill func(b *write.Batch, is *structure.Thread) error) error {
	return t.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		was, err := t.store.engine.Thread(ctx, t.id)
		if err != nil {
			return err
		}
		is := *was
		if err := t.store.forgetGone(ctx, &is); err != nil {
			return err
		}
		if err := fill(b, &is); err != nil {
			if now, again := t.store.engine.Thread(ctx, t.id); again == nil && !now.UpdatedAt.Equal(was.UpdatedAt) {
				return write.ErrPassed // it may have failed for that
			}
			return err
		}
		if len(b.Records()) > 0 || !structure.Equal(was, &is) {
			b.ChangeThread(was, is)
		}
		return nil
	})
}

// forgetGone leaves a thread without an active context if that was deleted: it cannot be
// stated with it.
func (s *Store) forgetGone(ctx context.Context, t *structure.Thread) error {
	if t.Active.IsZero() {
		return nil
	}
	_, err := s.engine.Context(ctx, t.Active)
	if isNotFound(err) {
		t.Active, err = ContextID{}, nil
	}
	return err
}

// Delete takes the thread out of the store with its branches, contexts and
// checkpoints, unless one of the functions given refuses the thread as it is then, with an error that is returned.
// Such a function may be called more than once if others change the thread meanwhile. What other threads share with it
// stays theirs; what they do not leaves the store's files with the next Collect.
func (t *Thread) Delete(ctx context.Context, refuse ...func(*ThreadInfo) error) error {
	may := func(is *structure.Thread) error {
		for _, refused := range refuse {
			if err := refused(threadInfo(is)); err != nil {
				return err
			}
		}
		return nil
	}
	all := func(ctx context.Context, from backend.Reader) iter.Seq2[backend.Context, error] {
		return from.Contexts(ctx, t.id, structure.ContextID{})
	}
	mayNow := func() error {
		is, err := t.store.engine.Thread(ctx, t.id)
		if err != nil {
			return err
		}
		return may(is)
	}
	return t.store.bequeath(ctx, all, t.id, mayNow, func() error {
		return t.store.change(ctx, func(b *write.Batch, _ write.Try) error {
			was, err := t.store.engine.Thread(ctx, t.id)
			if err != nil {
				return err
			}
			b.ExpectThread(t.id, was)
			b.DeleteThread(t.id)
			return may(was)
		})
	})
}

// Contexts yields the thread's contexts, those without a name included, oldest
// first.
func (t *Thread) Contexts(ctx context.Context) iter.Seq2[*Context, error] {
	return t.store.handles(t.store.engine.Contexts(ctx, t.id, structure.ContextID{}))
}

// Find returns the entry that was added to the thread with a source id, on whichever
// history of it. Store.View finds one in any thread.
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
