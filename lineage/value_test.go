package lineage_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

func valueOf(t testing.TB, v *lineage.Values, key string) string {
	t.Helper()
	got, err := v.Get(bg, key)
	if err != nil {
		require.ErrorIs(t, err, lineage.ErrNotFound)
		return ""
	}
	require.Equal(t, key, got.Key)
	return string(got.JSON)
}

func TestValuesOfEachScope(t *testing.T) {
	s := newStore(t)
	thread, main := newThread(t, s)
	scopes := map[string]*lineage.Values{
		"store": s.Values(lineage.Owner{Scope: lineage.StoreScope}), "app": s.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: "a\"b"}), "other app": s.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: "c"}), "user": s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}),
		"thread": s.Values(lineage.Owner{Thread: thread.ID()}), "context": s.Values(lineage.Owner{Context: main.ID()}),
	}
	for name, v := range scopes {
		require.Empty(t, valueOf(t, v, "k"))
		err := v.Delete(bg, "k")
		require.ErrorIs(t, err, lineage.ErrNotFound)
		require.ErrorContains(t, err, "k")
		require.NoError(t, v.Set(bg, "k", fmt.Appendf(nil, "%q", name)))
		require.NoError(t, v.Set(bg, "k/2", []byte(`{ "a" : 1.0 }`)))
		require.NoError(t, v.Set(bg, "l", []byte(`[]`)))
		require.ErrorIs(t, v.Set(bg, "k", []byte(`{`)), lineage.ErrInvalid)
		require.ErrorIs(t, v.Set(bg, "", []byte(`1`)), lineage.ErrInvalid)
		require.ErrorIs(t, v.Set(bg, strings.Repeat("k", 513), []byte(`1`)), lineage.ErrInvalid)
	}
	for name, v := range scopes {
		require.Equal(t, strconv.Quote(name), valueOf(t, v, "k"))
		require.Equal(t, `{ "a" : 1.0 }`, valueOf(t, v, "k/2"))
		var keys []string
		for one, err := range v.All(bg, "k") {
			require.NoError(t, err)
			keys = append(keys, one.Key)
		}
		require.Equal(t, []string{"k", "k/2"}, keys)
		require.NoError(t, v.Delete(bg, "k"))
		require.Empty(t, valueOf(t, v, "k"))
		var history []string
		for was, err := range v.History(bg, "k", 0) {
			require.NoError(t, err)
			history = append(history, string(was.JSON))
		}
		require.Equal(t, []string{"", strconv.Quote(name)}, history)
	}
}

// A fork inherits the values as of the time of the span it starts at.
// Values are deleted in parts, which begin after the key that was deleted last, and only those of the owner.
func TestDeleteRangeOfValues(t *testing.T) {
	s := newStore(t)
	v, other := s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "bob"})
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		require.NoError(t, v.Set(bg, key, []byte(`1`)))
		require.NoError(t, other.Set(bg, key, []byte(`1`)))
	}
	left := func(v *lineage.Values) (keys string) {
		for one, err := range v.All(bg, "") {
			require.NoError(t, err)
			keys += one.Key
		}
		return keys
	}
	for i, one := range []struct {
		after, before, next, left string
		deleted                   int
	}{{"", "d", "b", "cde", 2}, {"b", "d", "", "de", 1}, {"", "d", "", "de", 0}, {"d", "", "", "d", 1}, {"", "", "", "", 1}, {"", "", "", "", 0}} {
		next, deleted, err := v.DeleteRange(bg, one.after, one.before, 2)
		require.NoError(t, err)
		require.Equal(t, one.next, next, i)
		require.Equal(t, one.deleted, deleted, i)
		require.Equal(t, one.left, left(v), i)
	}
	require.Equal(t, "abcde", left(other))
	_, main := newThread(t, s)
	_, _, err := s.Values(lineage.Owner{Context: main.ID()}).DeleteRange(bg, "", "", 2)
	require.ErrorIs(t, err, lineage.ErrInvalid)
}

func TestValuesOfForks(t *testing.T) {
	s := newStore(t)
	_, main := newThread(t, s)
	v := s.Values(lineage.Owner{Context: main.ID()})
	require.NoError(t, v.Set(bg, "k", []byte("1")))
	one := say(t, main, "one")
	require.NoError(t, v.Set(bg, "k", []byte("2")))
	require.NoError(t, v.Set(bg, "later", []byte("2")))
	two := say(t, main, "two")
	require.NoError(t, v.Delete(bg, "k"))
	at := func(span lineage.SpanRef) *lineage.Context {
		c, err := main.Fork(bg, lineage.ForkOptions{At: span})
		require.NoError(t, err)
		return c
	}
	first, second := at(one), at(two)
	require.Equal(t, "1", valueOf(t, s.Values(lineage.Owner{Context: first.ID()}), "k"))
	require.Equal(t, "1", valueOf(t, s.Values(lineage.Owner{Context: main.ID()}).At(one), "k"))
	require.Empty(t, valueOf(t, s.Values(lineage.Owner{Context: first.ID()}), "later"))
	require.Equal(t, "2", valueOf(t, s.Values(lineage.Owner{Context: second.ID()}), "k"))
	require.Equal(t, "2", valueOf(t, s.Values(lineage.Owner{Context: main.ID()}).At(two), "later"))
	require.Empty(t, valueOf(t, v, "k"))
	require.ErrorIs(t, s.Values(lineage.Owner{Context: main.ID()}).At(one).Set(bg, "k", []byte("3")), lineage.ErrInvalid)

	require.NoError(t, s.Values(lineage.Owner{Context: second.ID()}).Delete(bg, "k"))
	require.Empty(t, valueOf(t, s.Values(lineage.Owner{Context: second.ID()}), "k"))
	require.NoError(t, s.Values(lineage.Owner{Context: second.ID()}).Set(bg, "own", []byte("3")))
	var keys []string
	for each, err := range s.Values(lineage.Owner{Context: second.ID()}).All(bg, "") {
		require.NoError(t, err)
		keys = append(keys, each.Key)
	}
	require.Equal(t, []string{"later", "own"}, keys)
	back(t, main, 2)
	require.Equal(t, "2", valueOf(t, v, "later"), "moving back moves no values")
}

func TestLargeValue(t *testing.T) {
	s := newStore(t)
	v := s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"})
	large := strconv.Quote(strings.Repeat("x", 300_000))
	require.NoError(t, v.Set(bg, "k", []byte(large)))
	require.Equal(t, large, valueOf(t, v, "k"))
	require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		return tx.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}).Set(bg, "l", []byte(large))
	}))
	require.Equal(t, large, valueOf(t, v, "l"))
}

// An event and its state changes, in all scopes, are one commit, and concurrent transactions lose
// no count.
func TestValuesInTransactions(t *testing.T) {
	s := newStore(t)
	thread, main := newThread(t, s)
	before := head(t, s)
	require.NoError(t, s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
		th, err := tx.Thread(bg, thread.ID())
		require.NoError(t, err)
		c, err := th.Active(bg)
		require.NoError(t, err)
		_, err = c.Extend(bg, lineage.User("event"))
		require.NoError(t, err)
		for _, v := range []*lineage.Values{tx.Values(lineage.Owner{Scope: lineage.StoreScope}), tx.Values(lineage.Owner{Scope: lineage.ApplicationScope, Name: "app"}), tx.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), tx.Values(lineage.Owner{Thread: th.ID()}), tx.Values(lineage.Owner{Context: c.ID()})} {
			require.Empty(t, valueOf(t, v, "k"))
			require.NoError(t, v.Set(bg, "k", []byte("1")))
			require.Equal(t, "1", valueOf(t, v, "k"))
			for _, err := range v.All(bg, "") {
				if v.Set(bg, "k", []byte("1")); err != nil {
					require.ErrorIs(t, err, lineage.ErrInvalid)
				}
			}
		}
		return nil
	}))
	require.Equal(t, before+1, head(t, s))
	require.Equal(t, "1", valueOf(t, s.Values(lineage.Owner{Context: main.ID()}), "k"))

	counter := func(ctx context.Context, tx *lineage.Tx) error {
		v, n := tx.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), 0
		if got, err := v.Get(ctx, "n"); err == nil {
			n, _ = strconv.Atoi(string(got.JSON))
		}
		return v.Set(ctx, "n", strconv.AppendInt(nil, int64(n+1), 10))
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 25 {
				if err := s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error { return counter(bg, tx) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.Equal(t, "200", valueOf(t, s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), "n"))
}

func TestValuesGoWithTheirOwner(t *testing.T) {
	s := newStore(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "t"})
	require.NoError(t, err)
	require.NoError(t, s.Values(lineage.Owner{Thread: thread.ID()}).Set(bg, "k", []byte("1")))
	require.NoError(t, s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}).Set(bg, "k", []byte("1")))
	require.NoError(t, thread.Delete(bg))
	thread, err = s.CreateThread(bg, lineage.ThreadOptions{SourceID: "t"})
	require.NoError(t, err)
	require.Empty(t, valueOf(t, s.Values(lineage.Owner{Thread: thread.ID()}), "k"))
	require.Equal(t, "1", valueOf(t, s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}), "k"))
}

func TestValueEvents(t *testing.T) {
	s := newStore(t)
	require.NoError(t, s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}).Set(bg, "k", []byte("1")))
	require.NoError(t, s.Values(lineage.Owner{Scope: lineage.UserScope, Name: "ada"}).Delete(bg, "k"))
	var events []string
	for c, err := range s.Watch(bg, lineage.Cursor{}) {
		require.NoError(t, err)
		for _, e := range c.Events {
			events = append(events, fmt.Sprint(e.Kind, " ", e.Owner, " ", e.Name))
		}
		if len(events) == 2 {
			break
		}
	}
	require.Equal(t, []string{`value set user "ada" k`, `value deleted user "ada" k`}, events)
}
