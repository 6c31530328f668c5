package conversation_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

// follower knows the branches and the current one from events alone.
type follower struct {
	t       require.TestingT
	names   map[string]string // by id
	current string
}

func follow(t require.TestingT, c *conversation.Conversation) *follower {
	f := &follower{t: t, names: make(map[string]string), current: currentID(t, c)}
	branches, err := c.Branches(bg)
	require.NoError(t, err)
	for _, b := range branches {
		f.names[b.ID] = b.Name
	}
	c.On(f.apply)
	return f
}

func (f *follower) apply(e conversation.Event) {
	switch e.Kind {
	case conversation.BranchCreated:
		require.NotContains(f.t, f.names, e.ID)
		f.names[e.ID] = e.Name
	case conversation.BranchCheckout:
		require.Equal(f.t, f.current, e.From)
		require.Contains(f.t, f.names, e.To)
		f.current = e.To
	case conversation.BranchDeleted:
		require.NotEqual(f.t, f.current, e.ID)
		delete(f.names, e.ID)
	case conversation.BranchRenamed:
		require.Contains(f.t, f.names, e.ID)
		f.names[e.ID] = e.Name
	}
}

func (f *follower) requireState(c *conversation.Conversation) {
	branches, err := c.Branches(bg)
	require.NoError(f.t, err)
	names := make(map[string]string)
	for _, b := range branches {
		names[b.ID] = b.Name
		require.Equal(f.t, b.ID == f.current, b.Current, b.ID)
	}
	require.Equal(f.t, names, f.names)
}

// changeAny makes one change of the branches, which may be refused.
func changeAny(c *conversation.Conversation, s *lineage.Store, what, which int) error {
	id := []string{"main", "a", "b", "fork", "fork-2"}[which%5]
	var err error
	switch what % 8 {
	case 0:
		_, err = c.CreateBranch(bg, id, "named "+id, nil)
	case 1:
		_, err = c.Fork(bg, "Fork")
	case 2:
		_, err = c.ForkFromMessage(bg, "Fork", 0)
	case 3:
		_, err = c.Checkout(bg, id)
	case 4:
		err = c.DeleteBranch(bg, id)
	case 5:
		err = c.RenameBranch(bg, id, fmt.Sprint("renamed ", which))
	case 6:
		_, err = c.Merge(bg, id, conversation.Replace)
	default:
		_, err = conversation.Open(bg, s, "session", conversation.Options{StartOnMain: which%2 == 0})
	}
	for _, refusal := range []error{lineage.ErrExists, lineage.ErrNotFound, lineage.ErrProtected, lineage.ErrInvalid} {
		if errors.Is(err, refusal) {
			return nil
		}
	}
	return err
}

// Whatever happens through two handles of a session, a listener that applies the events agrees with the state.
func TestListenerKnowsTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer s.Close()
		handles := []*conversation.Conversation{open(t, s), open(t, s)}
		followers := []*follower{follow(t, handles[0]), follow(t, handles[1])}
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			c := handles[rapid.IntRange(0, 1).Draw(t, "handle")]
			require.NoError(t, changeAny(c, s, rapid.IntRange(0, 7).Draw(t, "change"), rapid.IntRange(0, 9).Draw(t, "branch")))
			for _, f := range followers {
				f.requireState(c)
			}
		}
	})
}

func TestListenerKnowsTheStateOfConcurrentChanges(t *testing.T) {
	s, err := lineage.OpenMemory(bg, lineage.Options{})
	require.NoError(t, err)
	defer s.Close()
	handles := []*conversation.Conversation{open(t, s), open(t, s)}
	f := follow(t, handles[0])
	var changing sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		changing.Go(func() {
			for n := range 50 {
				if err := changeAny(handles[i%2], s, n*7+i*3, n*5+i); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	changing.Wait()
	require.NoError(t, errors.Join(errs...))
	f.requireState(handles[0])
}
