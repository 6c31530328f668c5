package lineage_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// Everything of a user goes, in more than one commit, and nothing of another user.
func TestDeleteUser(t *testing.T) {
	s := newStore(t)
	_, err := s.DeleteUser(bg, "")
	require.ErrorIs(t, err, lineage.ErrInvalid)

	const many = 300
	for i := range many {
		th, err := s.CreateThread(bg, lineage.ThreadOptions{UserID: "ada", SourceID: fmt.Sprintf("a%d", i)})
		require.NoError(t, err)
		if i%100 == 0 {
			main, err := th.Active(bg)
			require.NoError(t, err)
			_, err = main.Extend(bg, lineage.User("same"), lineage.Assistant("words"))
			require.NoError(t, err)
		}
	}
	ada, bob := lineage.Owner{Scope: lineage.UserScope, Name: "ada"}, lineage.Owner{Scope: lineage.UserScope, Name: "bob"}
	for i := range many {
		require.NoError(t, s.Values(ada).Set(bg, fmt.Sprintf("k%d", i), []byte("1")))
	}
	require.NoError(t, s.Values(bob).Set(bg, "k1", []byte("2")))
	_, err = s.CreateThread(bg, lineage.ThreadOptions{SourceID: "nobody's"})
	require.NoError(t, err)
	bobs, err := s.CreateThread(bg, lineage.ThreadOptions{UserID: "bob"})
	require.NoError(t, err)
	// Bob's fork of a message of ada's keeps it.
	first, err := s.FindThread(bg, "a0")
	require.NoError(t, err)
	main, err := first.Active(bg)
	require.NoError(t, err)
	fork, err := main.Fork(bg, lineage.ForkOptions{Thread: bobs.ID()})
	require.NoError(t, err)

	done, err := s.DeleteUser(bg, "ada")
	require.NoError(t, err)
	require.Equal(t, lineage.UserDeletion{Threads: many, Messages: 6, Values: many}, done)
	require.Len(t, gathered(t, s.Threads(bg, lineage.ThreadQuery{})), 2)
	require.Empty(t, gathered(t, s.Values(ada).All(bg, "")))
	require.Len(t, gathered(t, s.Values(bob).All(bg, "")), 1)
	require.Equal(t, []string{"same", "words"}, texts(t, fork))
	_, err = s.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"same", "words"}, texts(t, fork))

	done, err = s.DeleteUser(bg, "ada")
	require.NoError(t, err)
	require.Zero(t, done, "nothing is left")
}

// Two deletions and a writer at once: each thread is counted once.
func TestDeleteUserTwice(t *testing.T) {
	s := newStore(t)
	for range 40 {
		_, err := s.CreateThread(bg, lineage.ThreadOptions{UserID: "ada"})
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	counts := make([]lineage.UserDeletion, 2)
	errs := make([]error, 2)
	for i := range counts {
		all.Go(func() { counts[i], errs[i] = s.DeleteUser(bg, "ada") })
	}
	all.Wait()
	require.NoError(t, errs[0])
	require.NoError(t, errs[1])
	require.Equal(t, 40, counts[0].Threads+counts[1].Threads)
}
