package lineage_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// titles returns the titles of the threads that match a query, page by page.
func titles(t *testing.T, s *lineage.Store, q lineage.ThreadQuery) (all []string) {
	t.Helper()
	for {
		n := 0
		for l, err := range s.Threads(bg, q) {
			require.NoError(t, err)
			info, err := l.Info(bg)
			require.NoError(t, err)
			require.Equal(t, info, l.Was)
			all, q.After = append(all, l.Was.Title), l.Page
			if n++; n == 2 {
				break
			}
		}
		if n < 2 {
			return all
		}
	}
}

// feature: lineage/threads
func TestThreads(t *testing.T) {
	s := newStore(t)
	day := func(n int) time.Time { return time.Date(2021, 1, n, 0, 0, 0, 0, time.UTC) }
	make := func(title, user, metadata string, said time.Time) {
		th, err := s.CreateThread(bg, lineage.ThreadOptions{
			SourceID: "import/" + title, Title: title, UserID: user, Metadata: []byte(metadata), CreatedAt: day(1), UpdatedAt: day(1),
		})
		require.NoError(t, err)
		c, err := th.Active(bg)
		require.NoError(t, err)
		_, err = c.Extend(bg, lineage.Item{Role: "user", Body: []byte(title), CreatedAt: said})
		require.NoError(t, err)
	}
	make("Alpha", "ada", `{"project":"x","n":1}`, day(5))
	make("Beta", "bob", `{"project":"x","n":1.0}`, day(3))
	make("alphabet", "ada", `{"project":"y"}`, day(4))
	make("Gamma", "", "", day(9))
	ada, nobody := "ada", ""
	project := []lineage.MetadataIs{{Key: "project", Value: []byte(`"x"`)}}
	for _, test := range []struct {
		q    lineage.ThreadQuery
		want []string
	}{
		{lineage.ThreadQuery{}, []string{"Gamma", "Alpha", "alphabet", "Beta"}},
		{lineage.ThreadQuery{Oldest: true}, []string{"Beta", "alphabet", "Alpha", "Gamma"}},
		{lineage.ThreadQuery{User: &ada}, []string{"Alpha", "alphabet"}},
		{lineage.ThreadQuery{User: &nobody}, []string{"Gamma"}},
		{lineage.ThreadQuery{Metadata: project}, []string{"Alpha", "Beta"}},
		{lineage.ThreadQuery{Metadata: append(project, lineage.MetadataIs{Key: "n", Value: []byte("10e-1")}), User: &ada}, []string{"Alpha"}},
		{lineage.ThreadQuery{TitlePrefix: "ALPHA"}, []string{"Alpha", "alphabet"}},
		{lineage.ThreadQuery{SourcePrefix: "import/G"}, []string{"Gamma"}},
		{lineage.ThreadQuery{From: day(4), To: day(9)}, []string{"Alpha", "alphabet"}},
	} {
		require.Equal(t, test.want, titles(t, s, test.q), "%+v", test.q)
	}
	beta, err := s.FindThread(bg, "import/Beta")
	require.NoError(t, err)
	info, err := beta.Info(bg)
	require.NoError(t, err)
	require.Equal(t, day(3), info.LastMessage)
	require.Equal(t, day(3), info.UpdatedAt)
	gamma, err := s.FindThread(bg, "import/Gamma")
	require.NoError(t, err)
	require.NoError(t, gamma.Update(bg, func(i *lineage.ThreadInfo) error { i.UserID = "ada"; return nil }))
	require.Equal(t, []string{"Gamma", "Alpha", "alphabet"}, titles(t, s, lineage.ThreadQuery{User: &ada}))
}

func TestOpenThread(t *testing.T) {
	s := newStore(t)
	_, err := s.OpenThread(bg, lineage.ThreadOptions{})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	const callers = 16
	ids := make([]lineage.ThreadID, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			th, err := s.OpenThread(bg, lineage.ThreadOptions{SourceID: "one", Title: fmt.Sprint(i)})
			if err == nil {
				ids[i] = th.ID()
			}
		})
	}
	all.Wait()
	for i := range callers {
		require.Equal(t, write.SourceThread("one"), ids[i])
	}
	require.Len(t, gathered(t, s.Threads(bg, lineage.ThreadQuery{})), 1)
	found, err := s.FindThread(bg, "one")
	require.NoError(t, err)
	was, err := found.Info(bg)
	require.NoError(t, err)
	_, err = s.OpenThread(bg, lineage.ThreadOptions{SourceID: "one", Title: "another"})
	require.NoError(t, err)
	got, err := found.Info(bg)
	require.NoError(t, err)
	require.Equal(t, was, got)
	_, err = s.CreateThread(bg, lineage.ThreadOptions{SourceID: "one"})
	require.ErrorIs(t, err, lineage.ErrExists)
}

func TestOpenBranch(t *testing.T) {
	s := newStore(t)
	thread, main := newThread(t, s)
	spans, err := main.Extend(bg, lineage.User("a"), lineage.User("b"))
	require.NoError(t, err)
	_, _, err = thread.OpenBranch(bg, "", lineage.BranchOptions{})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	const callers = 16
	ids := make([]lineage.ContextID, callers)
	var created atomic.Int32
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			c, made, err := thread.OpenBranch(bg, "one", lineage.BranchOptions{At: spans[0]})
			if assert.NoError(t, err) {
				ids[i] = c.ID()
			}
			if made {
				created.Add(1)
			}
			_, err = c.Extend(bg, lineage.User("c")) // others open it while it grows
			assert.NoError(t, err)
		})
	}
	all.Wait()
	require.EqualValues(t, 1, created.Load())
	one, err := thread.BranchContext(bg, "one")
	require.NoError(t, err)
	for _, id := range ids {
		require.Equal(t, one.ID(), id)
	}
	length, err := one.Len(bg)
	require.NoError(t, err)
	require.EqualValues(t, 1+callers, length)
	before, err := s.View().Head(bg)
	require.NoError(t, err)
	for _, o := range []lineage.BranchOptions{{At: spans[0]}, {Empty: true}, {From: one}} {
		_, made, err := thread.OpenBranch(bg, "one", o)
		require.NoError(t, err)
		require.False(t, made)
	}
	for _, o := range []lineage.BranchOptions{{At: spans[1]}, {}, {At: spans[0], SourceID: "x"}} {
		_, _, err := thread.OpenBranch(bg, "one", o)
		require.ErrorIs(t, err, lineage.ErrExists)
	}
	after, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Equal(t, before, after, "opening writes nothing")
}

// feature: lineage/contexts-alone
func TestContextsAlone(t *testing.T) {
	s := newStore(t)
	_, main := newThread(t, s)
	_, err := main.Fork(bg, lineage.ForkOptions{})
	require.NoError(t, err)
	var want, got []lineage.ContextID
	for range 3 {
		c, err := s.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		fork, err := c.Fork(bg, lineage.ForkOptions{})
		require.NoError(t, err)
		want = append(want, c.ID(), fork.ID())
	}
	for c, err := range s.Contexts(bg) {
		require.NoError(t, err)
		got = append(got, c.ID())
	}
	require.Equal(t, want, got)
}

// feature: lineage/subset
func TestSeesByTime(t *testing.T) {
	s := newStore(t)
	_, c := newThread(t, s)
	at := func(n int) time.Time { return time.UnixMilli(int64(n)).UTC() }
	for i, n := range []int{10, 30, 20, 40} {
		_, err := c.Extend(bg, lineage.Item{Role: []string{"user", "assistant"}[i%2], Body: fmt.Append(nil, n), CreatedAt: at(n)})
		require.NoError(t, err)
	}
	said := func(f lineage.Filter) []string {
		some, err := c.Fork(bg, lineage.ForkOptions{Sees: &f})
		require.NoError(t, err)
		return texts(t, some)
	}
	require.Equal(t, []string{"30", "20"}, said(lineage.Filter{Since: at(20), Until: at(40)}))
	require.Equal(t, []string{"10", "20"}, said(lineage.Filter{Until: at(30)}))
	require.Equal(t, []string{"40"}, said(lineage.Filter{Since: at(21), Roles: []string{"assistant"}, Window: lineage.Window{Last: 2}}))
}

// A source id of a thread is refused if the documented tables of chats could not hold it. One of an earlier version
// stays, and its thread can be changed.
func TestSourceIDsOfThreadsAreLimited(t *testing.T) {
	s := newStore(t)
	id := strings.Repeat("x", backend.MaxSourceID)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: id})
	require.NoError(t, err)
	found, err := s.FindThread(bg, id)
	require.NoError(t, err)
	require.Equal(t, thread.ID(), found.ID())
	for name, create := range map[string]func() error{
		"create": func() error { _, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: id + "x"}); return err },
		"open":   func() error { _, err := s.OpenThread(bg, lineage.ThreadOptions{SourceID: id + "x"}); return err },
		"transaction": func() error {
			return s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
				_, err := tx.CreateThread(ctx, lineage.ThreadOptions{SourceID: id + "x"})
				return err
			})
		},
	} {
		err := create()
		var refused *lineage.SubjectError
		require.ErrorIs(t, err, lineage.ErrInvalid, name)
		require.ErrorAs(t, err, &refused, name)
		require.Contains(t, refused.Detail, "4096 bytes", name)
		require.Less(t, len(err.Error()), 300, name)
	}

	var old *structure.Thread
	_, err = write.Of(s).Make(bg, func(b *write.Batch, _ write.Try) error {
		old = b.NewThread(write.Thread{SourceID: id + "of old"})
		return nil
	})
	require.NoError(t, err)
	thread, err = s.FindThread(bg, old.SourceID)
	require.NoError(t, err)
	require.NoError(t, thread.Update(bg, func(info *lineage.ThreadInfo) error {
		info.Title = "changed"
		return nil
	}))
}
