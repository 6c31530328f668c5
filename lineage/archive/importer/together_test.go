package importer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/backend"
)

// counts returns what a store has, without the sizes on disk and what imports left behind.
func counts(t require.TestingT, s *lineage.Store) backend.Stats {
	_, err := s.Collect(context.Background(), lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
	require.NoError(t, err)
	stats, err := s.Stats(context.Background())
	require.NoError(t, err)
	return stats.Counts()
}

func openIn(t require.TestingT, dir string) *lineage.Store {
	s, err := lineage.Open(context.Background(), dir, lineage.Options{Durability: lineage.Normal})
	require.NoError(t, err)
	return s
}

// An import during which another import of the same archive runs, before any of its commits, makes the store that one
// import makes.
func TestImportDuringAnother(t *testing.T) {
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		all := conversations(t, 3)
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 { // several commits
			grow(t, all[0], rapid.IntRange(0, 2).Draw(t, "ids"), true, 700)
		}
		one := openIn(t, fmt.Sprintf("%s/%d one", dir, n))
		defer one.Close()
		importMade(t, one, all)
		want := counts(t, one)

		two := openIn(t, fmt.Sprintf("%s/%d two", dir, n))
		defer two.Close()
		engine := &meddling{Engine: write.Of(two).Engine(), left: rapid.IntRange(1, 4).Draw(t, "before commit")}
		cut := rapid.IntRange(1, len(all)).Draw(t, "conversations of the other")
		engine.meddle = func() { importMade(t, two, all[:cut]) }
		importMade(t, lineage.New(engine), all)
		requireImported(t, two, all)
		requireNothingNew(t, two, all)
		require.Equal(t, want, counts(t, two))
	})
}

// Two imports of a newer export, or two readers of a session, add an edited message and the long rest after it once. The
// first commit of several has only messages, and each can be refused.
func TestForkDuringAnother(t *testing.T) {
	message := func(id, parent string) archive.Node {
		return archive.Node{ID: id, Parent: parent, Role: "user", Body: []byte("message " + id)}
	}
	was := &archive.Conversation{SourceID: "c", Nodes: []archive.Node{message("1", ""), message("2", "1"), message("3", "2")}}
	const last = 700
	now := *was
	now.Nodes = append(slices.Clone(was.Nodes), message("4", "1"))
	for k := 5; k <= last; k++ {
		now.Nodes = append(now.Nodes, message(fmt.Sprint(k), fmt.Sprint(k-1)))
	}
	t.Run("imports", func(t *testing.T) {
		s := storetest.New(t)
		importMade(t, s, []*archive.Conversation{was})
		engine := &meddling{Engine: write.Of(s).Engine(), left: 1, meddle: func() { importMade(t, s, []*archive.Conversation{&now}) }}
		importMade(t, lineage.New(engine), []*archive.Conversation{&now})
		requireImported(t, s, []*archive.Conversation{&now})
		requireNothingNew(t, s, []*archive.Conversation{&now})
	})
	t.Run("readers", func(t *testing.T) {
		s := storetest.New(t)
		engine := &meddling{Engine: write.Of(s).Engine()}
		line := func(id, parent string) string {
			b, err := json.Marshal(object{"sessionId": "c", "uuid": id, "parentUuid": parent, "type": "user", "timestamp": "2026-01-01T00:00:00Z", "message": object{"role": "user", "content": id}})
			require.NoError(t, err)
			return string(b) + "\n"
		}
		begun, added := line("1", "")+line("2", "1"), line("4", "1")
		for k := 5; k <= last; k++ {
			added += line(fmt.Sprint(k), fmt.Sprint(k-1))
		}
		read := func(g *importer.Growing, text string) {
			_, err := g.Read(t.Context(), strings.NewReader(text))
			require.NoError(t, err)
		}
		one := importer.Grow(s, "c.jsonl", importer.Options{Format: "claude-code"})
		two := importer.Grow(lineage.New(engine), "c.jsonl", importer.Options{Format: "claude-code"})
		defer one.Close()
		defer two.Close()
		read(one, begun)
		read(two, begun)
		engine.left, engine.meddle = 1, func() { read(one, added) }
		read(two, added)
		require.LessOrEqual(t, engine.left, 0)
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, last-1, stats.Spans)
	})
}

// Imports of the same archive by several processes at once make the store that one import makes.
func TestImportsOfOneArchiveAtOnce(t *testing.T) {
	all := []*archive.Conversation{}
	for i := range 6 {
		c := &archive.Conversation{SourceID: fmt.Sprintf("c-%d", i), Title: "t"}
		for k := range 300 {
			n := archive.Node{Role: "user", Body: []byte(fmt.Sprint(k, strings.Repeat(" x", 100)))}
			switch {
			case i%2 == 0:
				n.ID = fmt.Sprint("m-", k)
				if k%50 == 49 {
					n.Parent = fmt.Sprint("m-", k-20)
				}
			case k%100 == 0:
				n.Root = true
			}
			c.Nodes = append(c.Nodes, n)
		}
		all = append(all, c)
	}
	one := storetest.New(t)
	importMade(t, one, all)
	s := storetest.New(t)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			_, err := importer.Import(context.Background(), s, archive.Stream("made", strings.NewReader("made")), madeFormat(all))
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	requireImported(t, s, all)
	requireNothingNew(t, s, all)
	require.Equal(t, counts(t, one), counts(t, s))
	requireSound(t, s)
}

// The order in which exports of a conversation are imported does not matter for what is stored. The latest export
// decides where ids lead to.
func TestOrderOfExports(t *testing.T) {
	export := func(updated int64, texts ...string) *archive.Conversation {
		c := &archive.Conversation{SourceID: "c", Created: time.UnixMilli(1e12), Updated: time.UnixMilli(1e12 + updated)}
		for i, text := range texts {
			c.Nodes = append(c.Nodes, archive.Node{ID: fmt.Sprint("m", i), Role: "user", Body: []byte(text)})
		}
		return c
	}
	exports := []*archive.Conversation{export(1, "a", "b", "c"), export(2, "a", "B", "c", "d"), export(3, "a", "b", "c", "d", "e")}
	var want backend.Stats
	for i, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		s := storetest.New(t)
		for _, k := range order {
			importMade(t, s, exports[k:k+1])
		}
		for k := range exports {
			requireNothingNew(t, s, exports[k:k+1])
		}
		for id, text := range map[string]string{"m0": "a", "m4": "e"} {
			require.Equal(t, text, found(t, s, "c", id).Excerpt())
		}
		stats := counts(t, s)
		if i == 0 {
			want = stats
		}
		require.Equal(t, want.Spans, stats.Spans, "%v", order)
		require.Equal(t, want.Blocks, stats.Blocks, "%v", order)
	}
}

// A thread that is deleted during its import is left out. Other conversations are imported.
func TestThreadDeletedDuringItsImport(t *testing.T) {
	ctx := context.Background()
	long := &archive.Conversation{SourceID: "long"}
	for k := range 200 {
		long.Nodes = append(long.Nodes, archive.Node{ID: fmt.Sprint(k), Role: "user", Body: []byte(fmt.Sprint("message ", k, strings.Repeat(" x", 1000)))})
	}
	all := []*archive.Conversation{{SourceID: "before", Nodes: []archive.Node{{Role: "user", Body: []byte("a")}}}, long, {SourceID: "after", Nodes: []archive.Node{{Role: "user", Body: []byte("b")}}}}
	for left := 2; ; left++ {
		s := storetest.New(t)
		engine := &meddling{Engine: write.Of(s).Engine(), left: left, meddle: func() {
			thread, err := s.FindThread(ctx, "long")
			require.NoError(t, err)
			require.NoError(t, thread.Delete(ctx))
		}}
		report := importMade(t, lineage.New(engine), all)
		requireImported(t, s, []*archive.Conversation{all[0], all[2]})
		if engine.left > 0 {
			require.Greater(t, left, 2)
			return
		}
		require.Len(t, report.Skipped, 1)
		require.ErrorIs(t, report.Skipped[0], lineage.ErrConflict)
		_, err := s.FindThread(ctx, "long")
		require.ErrorIs(t, err, lineage.ErrNotFound)
		requireSound(t, s)
		importMade(t, s, all)
		requireImported(t, s, all)
	}
}

// People continue a conversation while it is imported: both keep what they have.
func TestExtendedDuringItsImport(t *testing.T) {
	ctx := context.Background()
	c := &archive.Conversation{SourceID: "c"}
	for k := range 1500 {
		c.Nodes = append(c.Nodes, archive.Node{ID: fmt.Sprint(k), Role: "user", Body: []byte(fmt.Sprint("message ", k))})
	}
	short := *c
	short.Nodes = c.Nodes[:100]
	for left := 1; ; left++ {
		s := storetest.New(t)
		importMade(t, s, []*archive.Conversation{&short})
		var mine []lineage.SpanRef
		engine := &meddling{Engine: write.Of(s).Engine(), left: left, meddle: func() {
			thread, err := s.FindThread(ctx, "c")
			require.NoError(t, err)
			main, err := thread.BranchContext(ctx, lineage.MainBranch)
			require.NoError(t, err)
			mine, err = main.Extend(ctx, lineage.User("mine"))
			require.NoError(t, err)
		}}
		importMade(t, lineage.New(engine), []*archive.Conversation{c})
		thread, err := s.FindThread(ctx, "c")
		require.NoError(t, err)
		all, _ := histories(t, s, thread)
		require.True(t, all[expect(c).current], "before commit %d", left)
		if engine.left > 0 {
			require.Greater(t, left, 2)
			return
		}
		main, err := thread.BranchContext(ctx, lineage.MainBranch)
		require.NoError(t, err)
		tip, err := main.Tip(ctx)
		require.NoError(t, err)
		require.Equal(t, mine[0], tip, "before commit %d", left)
		requireNothingNew(t, s, []*archive.Conversation{c})
		requireSound(t, s)
	}
}

// A session that was resumed in another file shares the messages that it has of the first one, also if the two are
// imported one after the other, in any order, but not if they are of different users.
func TestResumedInAnotherImport(t *testing.T) {
	session := func(id, user string, texts ...string) *archive.Conversation {
		c := &archive.Conversation{SourceID: id, UserID: user, SharedIDs: true}
		for i, text := range texts {
			c.Nodes = append(c.Nodes, archive.Node{ID: "u-" + text, Role: "user", Body: []byte(text), Created: time.UnixMilli(1e12 + int64(i))})
		}
		return c
	}
	for name, c := range map[string]struct {
		first, second *archive.Conversation
		shared        int64
	}{
		"in order":       {session("s1", "ada", "a", "b", "c"), session("s2", "ada", "a", "b", "d"), 2},
		"the longer one": {session("s2", "ada", "a", "b", "c", "d"), session("s1", "ada", "a", "b"), 2},
		"two users":      {session("s1", "ada", "a", "b", "c"), session("s2", "bob", "a", "b", "d"), 0},
	} {
		s := storetest.New(t)
		importMade(t, s, []*archive.Conversation{c.first})
		report := importMade(t, s, []*archive.Conversation{c.second})
		require.Equal(t, c.shared, report.SharedMessages, name)
		require.EqualValues(t, int64(len(c.second.Nodes))-c.shared, report.NewMessages, name)
		requireNothingNew(t, s, []*archive.Conversation{c.first, c.second})
		requireSound(t, s)
	}
}
