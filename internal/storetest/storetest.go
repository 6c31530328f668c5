// Package storetest opens stores for tests. Power loss is tested by the engine, so commits do not wait for the disk.
package storetest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

// New opens an empty store in a directory. It is closed when the test ends, unless it is closed already.
func New(t testing.TB) *lineage.Store {
	t.Helper()
	return open(t, nil)
}

// NewTicking is New for a store with a clock of its own (Clock), so that no two changes have the same time.
func NewTicking(t testing.TB) *lineage.Store {
	t.Helper()
	return open(t, Clock())
}

func open(t testing.TB, now func() time.Time) *lineage.Store {
	t.Helper()
	s, err := lineage.Open(context.Background(), t.TempDir(), lineage.Options{Durability: lineage.Normal, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, lineage.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

// Clock returns a clock that advances by a second each time it is read.
func Clock() func() time.Time {
	var seconds atomic.Int64
	start := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	return func() time.Time { return start.Add(time.Duration(seconds.Add(1)) * time.Second) }
}
