// Package chattest tests implementations of chat.Store: everything that the interface promises. The test of an
// implementation calls [Run].
package chattest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// OpenFunc opens a store: an empty one the first time, later the same one again. close closes it.
type OpenFunc func(ctx context.Context) (s chat.Store, close func() error, err error)

// Config describes the implementation to test. The zero value of each field is the strictest, except for Search.
type Config struct {
	// New prepares a store that is removed when the test ends, and returns the function that opens it.
	New func(t testing.TB) OpenFunc
	// Search enables the tests of search.
	Search bool
	// Forgets states that the store loses its content when it is closed.
	Forgets bool
	// Reformats states that the store keeps the value of JSON but not its layout.
	Reformats bool
	// MaxID is the maximum number of characters of an id. If 0, it is chat.MaxID bytes.
	MaxID int
	// LongChain is the number of messages in the longest chain. Default 33,000, more than any database accepts as
	// parameters; with -short 2500.
	LongChain int
}

// store is a store under test.
type store struct {
	chat.Store
	config Config
	t      require.TestingT
	open   OpenFunc
	close  func() error
}

func newStore(t testing.TB, c Config) *store {
	s := &store{config: c, t: t, open: c.New(t)}
	s.start()
	t.Cleanup(func() { require.NoError(t, s.close()) })
	return s
}

func (s *store) start() {
	var err error
	s.Store, s.close, err = s.open(background)
	require.NoError(s.t, err)
}

// reopen closes and reopens the store.
func (s *store) reopen() {
	require.NoError(s.t, s.close())
	s.start()
}

var background = context.Background()
