package app

import (
	"context"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// OpenStore is an open store that a command works on.
type OpenStore struct {
	*App
	Name  string // for people and programs: see ShownStore
	Dir   string // for the command line's files about the store
	Store *lineage.Store
	// Thread is the current thread, nil if there is none.
	Thread *lineage.Thread
	Refs   *refs.Resolver
}

// OpenMode states what a command requires of the store.
type OpenMode uint8

const (
	// Reading opens the store read-only.
	Reading OpenMode = 1 << iota
	// Create creates the store if there is none.
	Create
	// Begins is for commands that start a thread. A database file that does not exist is created.
	Begins
	// Damaged suppresses the warning about damage, for commands about damage.
	Damaged
	// NoThread does not look up the current thread, for commands about the whole store.
	NoThread
	// Distribute distributes the tables of a store on a server: see postgres.Options.
	Distribute

	Changing OpenMode = 0
)

// Has reports whether a mode has a flag.
func (m OpenMode) Has(flag OpenMode) bool { return m&flag != 0 }

// NeedThread returns the current thread.
func (s *OpenStore) NeedThread() (*lineage.Thread, error) {
	if s.Thread == nil {
		return nil, &refs.NoThreadError{Where: "store"}
	}
	return s.Thread, nil
}

// Positions looks up two positions by name.
func (s *OpenStore) Positions(ctx context.Context, nameA, nameB string) (a, b *refs.Ref, err error) {
	if a, err = s.Refs.Find(ctx, nameA); err != nil {
		return nil, nil, err
	}
	b, err = s.Refs.Find(ctx, nameB)
	return a, b, err
}

// Home returns the thread in which a position was found, or the current one. A message that was named by its address
// is in the current thread if that has it in a history, else in the thread that it was written for.
func (s *OpenStore) Home(ctx context.Context, found *refs.Ref) (*lineage.Thread, error) {
	if found.Thread != nil && found.Thread != s.Thread {
		return found.Thread, nil
	}
	if found.Context == nil && found.Checkpoint == "" && !found.Span.IsZero() {
		if t, err := s.writtenFor(ctx, found.Span); t != nil || err != nil {
			return t, err
		}
	}
	return s.NeedThread()
}

// writtenFor returns the thread that a message was written for. It returns nil if that is the current one or is gone,
// or if the current one has the message in a history.
func (s *OpenStore) writtenFor(ctx context.Context, message lineage.SpanRef) (*lineage.Thread, error) {
	t, err := backend.HomeOf(ctx, s.Store.View(), message.Run)
	if t == nil || err != nil {
		return nil, err
	}
	if s.Thread != nil {
		if sees, err := refs.New(s.Store, s.Thread).Alone().Sees(ctx, message); sees || err != nil {
			return nil, err
		}
	}
	return s.Store.Thread(ctx, t.ID)
}

// ContextOf returns the context of a position, or else the active branch of the thread in which the position was
// found.
func (s *OpenStore) ContextOf(ctx context.Context, found *refs.Ref) (*refs.Ref, error) {
	if found.Context != nil {
		return found, nil
	}
	home, err := s.Home(ctx, found)
	if err != nil {
		return nil, err
	}
	return refs.New(s.Store, home).Context(ctx, "")
}
