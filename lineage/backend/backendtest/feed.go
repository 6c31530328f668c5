package backendtest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// testFeed reads the feed from every number: it yields the commits as applied, without
// the content that was stored before.
func testFeed(t *testing.T, c Config) {
	s := newStore(t, c)
	s.apply(tree()...)
	s.apply(talk()[0])
	s.apply(text("a1"), chunk("piece"), text("new"), erase("a2"))
	large := make([]structure.Record, 0, 900)
	for i := range 300 {
		large = append(large, told("a", uint64(5+i), fmt.Sprint("large ", i))...)
	}
	s.applyOnly(s.commit(large...), backend.Options{})
	for i := range 260 { // more than the likely size of any group of commits in an index
		s.applyOnly(s.commit(text("a1"), thread(fmt.Sprint(i))), backend.Options{Durability: backend.Normal})
	}
	for range 2 {
		for number := uint64(0); number <= s.model.number+2; number++ {
			if number > 20 && number < s.model.number-3 && number%61 != 0 {
				continue
			}
			want, got := s.model.feedFrom(number), s.Feed(background, from(number))
			if number%61 != 0 { // only a few of the commits
				want = want[:min(4, len(want))]
				got = atMost(len(want), got)
			}
			equalFeed(t, want, values(t, got))
		}
		s.restart()
	}

	// It ends at the head at the time of the call, and can start at any commit.
	feed := s.Feed(background, from(s.model.number))
	s.applyOnly(s.commit(thread("later")), backend.Options{})
	require.Len(t, list(t, feed), 1)
	next := uint64(1)
	for commit, err := range s.Feed(background, from(1)) {
		require.NoError(t, err)
		s.applyOnly(s.commit(thread("meanwhile")), backend.Options{})
		if next = commit.Number + 1; next > 5 {
			break
		}
	}
	equalFeed(t, s.model.feedFrom(next), values(t, s.Feed(background, from(next))))
	require.Empty(t, list(t, s.Feed(background, from(s.model.number+1))))
}

// atMost truncates a sequence to n values. With n = 0 it is read to the end.
func atMost[T any](n int, seq iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := n
		for v, err := range seq {
			if left--; !yield(v, err) || left == 0 {
				return
			}
		}
	}
}

// from returns the cursor for a feed that starts with commit number.
func from(number uint64) backend.Cursor { return backend.Cursor{Number: max(number, 1) - 1} }

func equalFeed(t tester, want, got []structure.Commit) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Number, got[i].Number)
		require.Equal(t, want[i].Time, got[i].Time, "time of commit %d", want[i].Number)
		require.Equal(t, plainRecords(want[i]), plainRecords(got[i]), "records of commit %d", want[i].Number)
	}
}

// plainRecords returns the comparable form of a commit's records.
func plainRecords(c structure.Commit) []structure.Record {
	out := slices.Clone(c.Records)
	for i, r := range out {
		if b, ok := r.(*structure.Block); ok {
			out[i] = new(plain(*b))
		}
	}
	return out
}

type arrival struct {
	number uint64
	err    error
}

// waiting calls Wait in a goroutine.
func waiting(ctx context.Context, e backend.Engine, after uint64) <-chan arrival {
	done := make(chan arrival, 1)
	go func() {
		c, err := e.Wait(ctx, backend.Cursor{Number: after})
		done <- arrival{c.Number, err}
	}()
	return done
}

// stillWaiting fails the test if Wait returns too early.
func stillWaiting(t *testing.T, done <-chan arrival) {
	t.Helper()
	select {
	case a := <-done:
		require.Fail(t, "did not wait", "%+v", a)
	case <-time.After(20 * time.Millisecond):
	}
}

func testWait(t *testing.T, c Config) {
	c.Reopen = false
	s := newStore(t, c)
	first, second := waiting(background, s, 0), waiting(background, s, 1)
	stillWaiting(t, first)
	s.apply(thread("t"))
	require.Equal(t, arrival{number: 1}, <-first)
	stillWaiting(t, second)
	s.refuse(backend.ErrInvalid)
	stillWaiting(t, second)
	s.apply(text("one"))
	require.Equal(t, arrival{number: 2}, <-second)
	require.Equal(t, arrival{number: 2}, <-waiting(background, s, 0))

	idle := waiting(background, s, 2)
	s.apply(text("one")) // nothing new, so no commit
	stillWaiting(t, idle)
	ctx, cancel := context.WithCancelCause(background)
	third := waiting(ctx, s, 2)
	stillWaiting(t, third)
	why := errors.New("enough")
	cancel(why)
	require.ErrorIs(t, (<-third).err, why)
	require.NoError(t, s.Close())
	require.ErrorIs(t, (<-idle).err, backend.ErrClosed)
	s.start()

	// Readers that wait for each commit in turn miss none.
	const commits = 100
	ended := make(chan error, 4)
	for range cap(ended) {
		go func() {
			after, err := s.Head(background)
			for err == nil && after.Number < 2+commits {
				var next backend.Cursor
				next, err = s.Wait(background, after)
				if err == nil && next.Number <= after.Number {
					err = fmt.Errorf("%v does not exceed %v", next, after)
				}
				after = next
			}
			ended <- err
		}()
	}
	for i := range commits {
		s.applyOnly(s.commit(thread(fmt.Sprint(i))), backend.Options{Durability: backend.Normal})
	}
	for range cap(ended) {
		require.NoError(t, <-ended)
	}
}
