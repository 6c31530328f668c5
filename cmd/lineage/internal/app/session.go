package app

import (
	"context"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

// Session is an open store that a command works on.
type Session struct {
	*App
	Name  string // as people and programs read it: see ShownStore
	Dir   string // for files of the command line that belong to the store
	Store *lineage.Store
	// Thread is the current thread, nil while there is none.
	Thread *lineage.Thread
	Refs   *refs.Resolver
}

// OpenMode is what a command needs of the store.
type OpenMode uint8

const (
	// Reading opens the store without the right to change it.
	Reading OpenMode = 1 << iota
	// Create creates the store if there is none.
	Create
	// Begins is for commands that begin a thread: a database in a file that is not there is created.
	Begins
	// Damaged leaves out the warning about damage: the command is about that.
	Damaged
	// NoThread leaves the current thread alone: the command is about the store.
	NoThread

	Changing OpenMode = 0
)

// Has reports whether a mode has a flag.
func (m OpenMode) Has(flag OpenMode) bool { return m&flag != 0 }

// NeedThread returns the current thread.
func (s *Session) NeedThread() (*lineage.Thread, error) {
	if s.Thread == nil {
		return nil, &refs.NoThreadError{Where: "store"}
	}
	return s.Thread, nil
}

// Positions returns the two positions that names stand for.
func (s *Session) Positions(ctx context.Context, nameA, nameB string) (a, b *refs.Ref, err error) {
	if a, err = s.Refs.Find(ctx, nameA); err != nil {
		return nil, nil, err
	}
	b, err = s.Refs.Find(ctx, nameB)
	return a, b, err
}

// Home returns the thread that something was found in, or the current one.
func (s *Session) Home(found *refs.Ref) (*lineage.Thread, error) {
	if found.Thread != nil {
		return found.Thread, nil
	}
	return s.NeedThread()
}

// ContextOf returns the context of a position, or else the active branch of the thread that the position was found in.
func (s *Session) ContextOf(ctx context.Context, found *refs.Ref) (*refs.Ref, error) {
	if found.Context != nil {
		return found, nil
	}
	home, err := s.Home(found)
	if err != nil {
		return nil, err
	}
	return refs.New(s.Store, home).Context(ctx, "")
}
