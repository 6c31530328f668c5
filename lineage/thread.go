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

// ThreadOptions configure a new thread.
type ThreadOptions struct {
	// SourceID is an id chosen by the caller, unique in the store: see Store.FindThread. It has at most 4096 bytes.
	SourceID string
	UserID   string
	Title    string
	// Metadata is JSON of the caller, kept byte for byte.
	Metadata []byte
	// Overrides are those of the main branch.
	Overrides Overrides
	// Keep keeps every message added to the thread for as long as the thread exists, even if no context leads to it.
	Keep bool
	// CreatedAt and UpdatedAt default to now. With its own times, an imported thread keeps its place in listings.
	CreatedAt, UpdatedAt time.Time
}

// ThreadInfo is the current state of a thread.
type ThreadInfo struct {
	ID       ThreadID
	SourceID string
	UserID   string
	Title    string
	Metadata []byte
	// Active is the context of the active branch.
	Active ContextID
	// Keeps is ThreadOptions.Keep.
	Keeps     bool
	CreatedAt time.Time
	// UpdatedAt is the time of the last change of the thread or of its last message, whichever is later. For a
	// message its own CreatedAt counts.
	UpdatedAt time.Time
	// LastMessage is the time of the latest message added to the thread, on any branch or none;
	// zero if there is none.
	LastMessage time.Time
}

// OpenThread returns the thread with the source id of the options, and creates it if there is none. An
// existing thread stays as it is. Of concurrent calls, one creates it. If UserID is set and the thread
// is another user's, the error is ErrOtherUser.
func (s *Store) OpenThread(ctx context.Context, o ThreadOptions) (*Thread, error) {
	if o.SourceID == "" {
		return nil, fmt.Errorf("open a thread without a source id: %w", ErrInvalid)
	}
	return s.createThread(ctx, o, true)
}

// CreateThread creates a thread with an empty, active main branch. If the source id is taken, the
// error is ErrExists.
func (s *Store) CreateThread(ctx context.Context, o ThreadOptions) (*Thread, error) {
	return s.createThread(ctx, o, false)
}

func (s *Store) createThread(ctx context.Context, o ThreadOptions, reuse bool) (*Thread, error) {
	if err := checkSettings(&o.Overrides, o.Metadata); err != nil {
		return nil, err
	}
	if err := backend.CheckSourceID(o.SourceID); err != nil {
		return nil, err
	}
	var created *structure.Thread
	err := s.change(ctx, func(b *write.Batch, t write.Try) error {
		if reuse {
			found, err := s.engine.Thread(ctx, write.SourceThread(o.SourceID))
			if created = found; !isNotFound(err) {
				if err == nil && o.UserID != "" && found.UserID != "" && found.UserID != o.UserID {
					return subjectError("thread", o.SourceID, ErrOtherUser, "")
				}
				return err
			}
		}
		if t.Taken("thread") && !reuse {
			return t.Err
		}
		created = b.NewThread(write.Thread{
			SourceID: o.SourceID, UserID: o.UserID, Title: o.Title, Metadata: o.Metadata, Keeps: o.Keep, CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt,
		})
		main := b.NewContext(write.Context{Thread: created.ID, Overrides: o.Overrides})
		// The context refers to the thread and the thread to the context.
		active := *created
		active.Active = main.ID
		b.Branch(&active, MainBranch, "", main.ID, b.Time())
		b.StateThread(active)
		return nil
	})
	if err != nil {
		if o.SourceID != "" && errors.Is(err, ErrExists) {
			return nil, subjectError("thread", o.SourceID, ErrExists, "")
		}
		return nil, err
	}
	return &Thread{store: s, id: created.ID}, nil
}

// Thread returns the thread with an id.
func (s *Store) Thread(ctx context.Context, id ThreadID) (*Thread, error) {
	if _, err := s.engine.Thread(ctx, id); err != nil {
		return nil, err
	}
	return &Thread{store: s, id: id}, nil
}

// FindThread returns the thread with a source id.
func (s *Store) FindThread(ctx context.Context, sourceID string) (*Thread, error) {
	t, err := s.Thread(ctx, write.SourceThread(sourceID))
	if isNotFound(err) {
		return nil, subjectError("thread", sourceID, ErrNotFound, "")
	}
	return t, err
}

// Info returns the current state of the thread.
func (t *Thread) Info(ctx context.Context) (ThreadInfo, error) {
	r, err := t.store.engine.Thread(ctx, t.id)
	if err != nil {
		return ThreadInfo{}, err
	}
	last, err := t.store.engine.LastMessage(ctx, r.Home())
	return ThreadInfoOf(backend.ThreadListing{Thread: r, LastMessage: last}), err
}

func threadInfo(r *structure.Thread) *ThreadInfo {
	return &ThreadInfo{
		ID: r.ID, SourceID: r.SourceID, UserID: r.UserID, Title: r.Title, Metadata: r.Metadata,
		Active: r.Active, Keeps: r.Keeps, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Update changes title, user, metadata, Keeps and UpdatedAt of the thread. Fields that change
// leaves alone keep their values; if it changes nothing or returns an error, nothing is committed.
// change may be called more than once. If it sets UpdatedAt, the time is the current one, whatever
// value is set.
//
// A user can be set, but not replaced (ErrOtherUser), because messages without a user belong to the
// user of their thread.
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

// change restates a thread and adds the records of fill, if there is any change. Only one change of a given state of
// a thread succeeds, so fill may rely on the state that it gets.
func (t *Thread) change(ctx context.Context, fill func(b *write.Batch, thread *structure.Thread) error) error {
	return t.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		was, err := t.store.engine.Thread(ctx, t.id)
		if err != nil {
			return err
		}
		thread := *was
		if err := t.store.clearDeletedActive(ctx, &thread); err != nil {
			return err
		}
		if err := fill(b, &thread); err != nil {
			if now, failed := t.store.engine.Thread(ctx, t.id); failed == nil && !now.UpdatedAt.Equal(was.UpdatedAt) {
				return write.ErrPassed // that may be why the change failed
			}
			return err
		}
		if len(b.Records()) > 0 || !structure.Equal(was, &thread) {
			b.ChangeThread(was, thread)
		}
		return nil
	})
}

// clearDeletedActive clears the active context of a thread if it was deleted: the engine refuses
// such a thread.
func (s *Store) clearDeletedActive(ctx context.Context, t *structure.Thread) error {
	if t.Active.IsZero() {
		return nil
	}
	_, err := s.engine.Context(ctx, t.Active)
	if isNotFound(err) {
		t.Active, err = ContextID{}, nil
	}
	return err
}

// Delete deletes the thread with its branches, contexts and checkpoints. If one of the refuse functions returns an
// error for the current state of the thread, nothing is deleted and the error is returned. They may be called more
// than once. History that other threads share remains there, and forks of the thread's contexts continue to inherit
// their overrides. The next Collect frees the rest.
func (t *Thread) Delete(ctx context.Context, refuse ...func(*ThreadInfo) error) error {
	return t.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		was, err := t.store.engine.Thread(ctx, t.id)
		if err != nil {
			return err
		}
		for _, refused := range refuse {
			if err := refused(threadInfo(was)); err != nil {
				return err
			}
		}
		b.ExpectThread(t.id, was)
		b.DeleteThread(t.id)
		return nil
	})
}

// Contexts yields the thread's contexts, with or without a name, oldest first.
func (t *Thread) Contexts(ctx context.Context) iter.Seq2[*Context, error] {
	return t.store.handles(t.store.engine.Contexts(ctx, t.id, structure.ContextID{}))
}

// Find returns the entry that was added to the thread with a source id, on any of its histories.
// Store.View finds entries of all threads.
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

// infoOf returns the state of a listed thread.
// ThreadInfoOf returns the information about a listed thread.
func ThreadInfoOf(l backend.ThreadListing) ThreadInfo {
	info := *threadInfo(l.Thread)
	info.UpdatedAt, info.LastMessage = l.Updated(), l.LastMessage
	return info
}
