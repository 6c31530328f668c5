package postgres

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/erasure"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/lineage/summarize"
	"github.com/lineage-store/lineage/server/access"
	"github.com/lineage-store/lineage/structure"
)

// TestRoundTrips counts what is sent to the server: it does not depend on what is in the store.
//
//test:norace
func TestRoundTrips(t *testing.T) {
	folding(t, 64<<10)
	dsn := pgtest.DSN(t)
	writer := handle(t, newPool(t, dsn, nil), "s")
	texts := make([]string, 600)
	for i := range texts {
		texts[i] = fmt.Sprint("message ", i)
	}
	thread := tell(t, writer, texts...)
	main, err := thread.Active(background)
	require.NoError(t, err)

	pool, trips := countedTrips(t, dsn)
	var e *Engine
	trips(2, "open", func() { e = handle(t, pool, "s") })
	var c backend.Context
	trips(1, "context", func() {
		c, err = e.Context(background, main.ID())
		require.NoError(t, err)
	})
	trips(2, "last 20 messages", func() {
		n := 0
		for _, err := range e.Path(background, c.Tip, structure.Window{Last: 20}, backend.PathOptions{Bodies: true}) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 20, n)
	})
	mine, err := lineage.New(e).Context(background, main.ID())
	require.NoError(t, err)
	_, err = mine.Extend(background, lineage.User("first"))
	require.NoError(t, err)
	for i := range 3 {
		trips(1, "a commit after one of this process", func() {
			_, err := mine.Extend(background, lineage.User(fmt.Sprint("more ", i)))
			require.NoError(t, err)
		})
	}
	var listed int
	trips(6, "list of threads", func() {
		for _, err := range e.ListThreads(background, backend.ThreadQuery{}) {
			require.NoError(t, err)
			listed++
		}
	})
	require.Equal(t, 1, listed)
}

// countedTrips returns connections, and a function that checks how many round trips something takes.
func countedTrips(t testing.TB, dsn string) (*pgxpool.Pool, func(most int, what string, do func())) {
	counted := &cutter{}
	pool := newPool(t, dsn, func(c *pgxpool.Config) { // one connection, which is there before
		c.MaxConns, c.MinConns = 2, 1
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // also when the test was slow
		c.ConnConfig.DialFunc = cuttable(t, dsn, counted).Config().ConnConfig.DialFunc
	})
	require.NoError(t, pool.Ping(background))
	return pool, func(most int, what string, do func()) {
		t.Helper()
		counted.arm(0, 0)
		do()
		counted.mu.Lock()
		defer counted.mu.Unlock()
		require.LessOrEqual(t, counted.count, most, what)
		require.Positive(t, counted.count, what)
	}
}

// A path takes a few round trips for hundreds of messages, also when something was erased, when messages repeat what other
// commits have, and when their rows are more than is read at once. So do the named values of a thread.
//
//test:norace
func TestRoundTripsOfPaths(t *testing.T) {
	dsn := pgtest.DSN(t)
	writer := handle(t, newPool(t, dsn, nil), "s")
	var texts []string
	var items []lineage.Item
	for i := range 300 {
		texts = append(texts, fmt.Sprint("message ", i))
		items = append(items, lineage.User(texts[i]))
	}
	thread := tell(t, writer, texts...) // a row for each message
	again, err := lineage.New(writer).CreateThread(background, lineage.ThreadOptions{})
	require.NoError(t, err)
	repeated, err := again.Active(background)
	require.NoError(t, err)
	_, err = repeated.Extend(background, items...)
	require.NoError(t, err)
	main, err := thread.Active(background)
	require.NoError(t, err)
	owner := structure.Owner{Scope: structure.ThreadScope, Thread: thread.ID()}
	values := lineage.New(writer).Values(owner)
	for i := range 200 {
		require.NoError(t, values.Set(background, fmt.Sprint("value ", i), []byte("1")))
	}
	pool, trips := countedTrips(t, dsn)
	read := func(most int, branch *lineage.Context, erasedOne bool) {
		t.Helper()
		e := handle(t, pool, "s")
		c, err := e.Context(background, branch.ID())
		require.NoError(t, err)
		trips(most, "path", func() {
			n, gone := 0, 0
			for step, err := range e.Path(background, c.Tip, structure.Window{}, backend.PathOptions{Bodies: true}) {
				require.NoError(t, err)
				if step.Blocks[0].Gone() {
					gone++
				} else {
					require.Equal(t, texts[n], string(step.Blocks[0].Body))
				}
				n++
			}
			require.Equal(t, len(texts), n)
			require.Equal(t, erasedOne, gone == 1)
		})
	}
	read(5, main, false)
	read(9, repeated, false)
	require.NoError(t, lineage.New(writer).Erase(background, content.Sum([]byte(texts[7]))))
	read(7, main, true)
	read(9, repeated, true)
	former := mostRead
	defer func() { mostRead = former }()
	var size int
	require.NoError(t, pool.QueryRow(background, `SELECT sum(octet_length(data)) FROM lineage_log`, exec).Scan(&size))
	mostRead = size / 8
	read(7+8, main, true)
	mostRead = former
	e := handle(t, pool, "s")
	trips(10, "values", func() {
		require.Equal(t, 200, drain(t, e.Values(background, owner, "", "")))
	})
}

// What is read of many threads in one state takes a few round trips. A thread with many branches, and one that is gone,
// are read like others.
//
//test:norace
func TestRoundTripsOfThreads(t *testing.T) {
	dsn := pgtest.DSN(t)
	writer := handle(t, newPool(t, dsn, nil), "s")
	var ids []structure.ThreadID
	for i := range 40 {
		thread := tell(t, writer, fmt.Sprint("thread ", i))
		ids = append(ids, thread.ID())
		for range 40 * (i / 39) {
			_, err := thread.CreateBranch(background, "", lineage.BranchOptions{})
			require.NoError(t, err)
		}
		if i == 7 {
			require.NoError(t, thread.Delete(background))
		}
	}
	pool, trips := countedTrips(t, dsn)
	e := handle(t, pool, "s")
	s, err := e.Snapshot(background)
	require.NoError(t, err)
	defer s.Close()
	branches := 0
	trips(3+3, "threads", func() { // the one with many branches takes its own
		require.NoError(t, s.(backend.ThreadsAhead).ThreadsAhead(background, ids))
		for i, id := range ids {
			thread, err := s.Thread(background, id)
			if i == 7 {
				require.ErrorIs(t, err, backend.ErrNotFound)
				continue
			}
			require.NoError(t, err)
			_, err = s.LastMessage(background, thread.Home())
			require.NoError(t, err)
			branches += drain(t, s.Branches(background, id, "", ""))
			c, err := s.Context(background, thread.Active)
			require.NoError(t, err)
			_, err = s.Run(background, c.Tip.Run)
			require.NoError(t, err)
		}
	})
	require.Equal(t, 39+40, branches)
	var withoutMessages []structure.ThreadID
	for i := range 40 {
		thread, err := lineage.New(writer).CreateThread(background, lineage.ThreadOptions{})
		require.NoError(t, err)
		withoutMessages = append(withoutMessages, thread.ID())
		if i%2 == 0 {
			continue
		}
		main, err := thread.Active(background)
		require.NoError(t, err)
		subagent, err := main.Fork(background, lineage.ForkOptions{Metadata: []byte(`{"aside":"agent explore"}`)})
		require.NoError(t, err)
		_, err = subagent.Extend(background, lineage.User("one"), lineage.Assistant("two"))
		require.NoError(t, err)
	}
	trips(8, "records of threads in which only subagents have messages, or nobody", func() {
		all, err := records.OfThreads(background, lineage.New(e), withoutMessages)
		require.NoError(t, err)
		require.Len(t, all, 40)
		for i, r := range all {
			require.EqualValues(t, 2*(i%2), r.SubagentMessages)
		}
	})
	trips(2, "statistics", func() {
		stats, err := e.Stats(background)
		require.NoError(t, err)
		require.EqualValues(t, 39+40, stats.Threads)
		require.Positive(t, stats.StoredBytes)
	})
}

// The plan of an erasure takes pages of threads and summaries, and round trips only for the messages that use the content. Each
// thread has a fork and a fork of that, both with a summary and its embedding. Some summaries are erased.
//
//test:norace
func TestRoundTripsOfErasures(t *testing.T) {
	for _, threads := range []int{20, 100} {
		dsn := pgtest.DSN(t)
		writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
		options := lineage.SummarizeOptions{Whole: true, Embed: func(context.Context, string) ([]float32, error) { return []float32{1}, nil }}
		const users = 5
		var want []string
		left := 0
		for i := range threads {
			thread, err := writer.CreateThread(background, lineage.ThreadOptions{Title: "said by"})
			require.NoError(t, err)
			c, err := thread.Active(background)
			require.NoError(t, err)
			said := "said by all"
			if i >= users {
				said = fmt.Sprint("said by ", i)
			}
			_, err = c.Extend(background, lineage.User(said))
			require.NoError(t, err)
			for depth := range 2 {
				c, err = c.Fork(background, lineage.ForkOptions{})
				require.NoError(t, err)
				_, err = c.Extend(background, lineage.User(fmt.Sprint("said in thread ", i, " at ", depth)))
				require.NoError(t, err)
				summary, err := c.Summarize(background, summarize.Extractive{}, options)
				require.NoError(t, err)
				if i%10 == 0 {
					require.NoError(t, writer.Erase(background, summary.Content))
					continue
				}
				left++
				if i < users {
					want = append(want, summary.Content.String())
				}
			}
		}
		pool, trips := countedTrips(t, dsn)
		e := handle(t, pool, "s")
		trips(40, fmt.Sprint("an erasure beside ", threads, " threads"), func() {
			plan, err := erasure.OfContent(background, lineage.New(e), content.Sum([]byte("said by all")))
			require.NoError(t, err)
			require.Equal(t, users, plan.Erased[0].Uses)
			require.Len(t, plan.Erased[0].Titles, threads)
			require.ElementsMatch(t, want, plan.Erased[0].Summaries)
		})
		embeddings := 0
		trips(5, "summaries", func() {
			for s, err := range e.Summaries(background, structure.ContextID{}) {
				require.NoError(t, err)
				if s.Embedding != nil {
					embeddings++
				}
			}
		})
		require.Equal(t, left, embeddings)
	}
}

// Titles of threads without one, and the last messages of threads, take some round trips for a page of threads: those whose first
// message is a prompt, those with others before it, forks, and those with messages of subagents only. So a name that no thread has
// is looked for in pages.
//
//test:norace
func TestRoundTripsOfTitles(t *testing.T) {
	for threads, pages := range map[int]int{20: 1, 120: 3} {
		dsn := pgtest.DSN(t)
		writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
		var infos []lineage.ThreadInfo
		var ids []lineage.ThreadID
		var want []string
		for i := range threads {
			thread, err := writer.CreateThread(background, lineage.ThreadOptions{SourceID: fmt.Sprint("thread ", i)})
			require.NoError(t, err)
			c, err := thread.Active(background)
			require.NoError(t, err)
			prompt := lineage.User(fmt.Sprint("prompt ", i))
			var title, last string
			switch title = "prompt " + fmt.Sprint(i); i % 5 {
			case 0:
				_, err = c.Extend(background, prompt, lineage.Assistant("answer"))
				last = "answer"
			case 1:
				for range 6 {
					_, err = c.Extend(background, lineage.System("be brief"))
					require.NoError(t, err)
				}
				_, err = c.Extend(background, prompt)
				last = title
			case 2:
				_, err = c.Extend(background, prompt)
				require.NoError(t, err)
				c, err = thread.CreateBranch(background, "other", lineage.BranchOptions{Switch: true})
				require.NoError(t, err)
				_, err = c.Extend(background, lineage.Assistant("in the fork"))
				last = "in the fork"
			case 3:
				var subagent *lineage.Context
				subagent, err = c.Fork(background, lineage.ForkOptions{Metadata: []byte(`{"aside":"agent explore"}`)})
				require.NoError(t, err)
				_, err = subagent.Extend(background, prompt)
			case 4:
				title = fmt.Sprint("thread ", i)
			}
			require.NoError(t, err)
			info, err := thread.Info(background)
			require.NoError(t, err)
			infos, ids, want = append(infos, info), append(ids, info.ID), append(want, title)
			one, err := writer.ShownTitle(background, info)
			require.NoError(t, err)
			require.Equal(t, title, one)
			entries, err := writer.LastEntries(background, ids[i:])
			require.NoError(t, err)
			if last == "" {
				require.Nil(t, entries[0])
			} else {
				require.Equal(t, last, string(entries[0].Body))
			}
		}
		pool, trips := countedTrips(t, dsn)
		s := lineage.New(handle(t, pool, "s"))
		trips(4+12*pages, fmt.Sprint("titles of ", threads), func() {
			titles, err := s.ShownTitles(background, infos)
			require.NoError(t, err)
			require.Equal(t, want, titles)
		})
		trips(12, fmt.Sprint("last messages of ", threads), func() {
			last, err := s.LastEntries(background, ids)
			require.NoError(t, err)
			for i, e := range last {
				require.Equal(t, i%5 < 3, e != nil)
			}
		})
		s = lineage.New(handle(t, pool, "s"))
		trips(30+20*pages, fmt.Sprint("a name that none of ", threads, " has"), func() {
			var unknown *refs.UnknownError
			_, err := refs.New(s, nil).Thread(background, "prompt 1x")
			require.ErrorAs(t, err, &unknown)
			require.Contains(t, unknown.Near, "prompt 1")
		})
		found, err := refs.New(s, nil).Thread(background, "Prompt 1")
		require.NoError(t, err)
		require.Equal(t, ids[1], found.ID())
	}
}

// Which uses of a content are in a scope is asked for many runs at once: a use is in a run and a thread of its own.
//
//test:norace
func TestRoundTripsOfUsesInAScope(t *testing.T) {
	for uses, pages := range map[int]int{30: 1, 200: 2} {
		dsn := pgtest.DSN(t)
		writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
		var threads []*lineage.Thread
		var runs []structure.RunID
		for i := range uses {
			thread, err := writer.CreateThread(background, lineage.ThreadOptions{UserID: []string{"ada", "bob"}[i%2]})
			require.NoError(t, err)
			threads = append(threads, thread)
			c, err := thread.Active(background)
			require.NoError(t, err)
			said, err := c.Extend(background, lineage.User("said by all"))
			require.NoError(t, err)
			runs = append(runs, said[0].Run)
		}
		pool, trips := countedTrips(t, dsn)
		view := lineage.New(handle(t, pool, "s")).View()
		scope := &access.Scope{Users: []string{"bob"}}
		trips(6, fmt.Sprint(uses, " runs in a scope"), func() {
			has, err := scope.HasRuns(background, view, runs)
			require.NoError(t, err)
			for i, id := range runs {
				require.Equal(t, i%2 == 1, has[id])
			}
		})
		for user, most := range map[string]int{"bob": 6 + 6*1, "nobody": 6 + 6*pages} {
			view = lineage.New(handle(t, pool, "s")).View()
			trips(most, fmt.Sprintf("a content with %d uses for %s", uses, user), func() {
				has, err := (&access.Scope{Users: []string{user}}).HasContent(background, view, content.Sum([]byte("said by all")), lineage.ThreadID{})
				require.NoError(t, err)
				require.Equal(t, user == "bob", has)
			})
		}
		require.NoError(t, threads[1].Delete(background))
		_, err := writer.Collect(background, all)
		require.NoError(t, err)
		trips(8, "some of which are collected", func() {
			has, err := scope.HasRuns(background, view, runs)
			require.NoError(t, err)
			for i, id := range runs {
				require.Equal(t, i%2 == 1 && i != 1, has[id])
			}
		})
	}
}

// The reach of threads that keep their runs is read in pages: of some threads with a few runs, and of one with many. Branches of
// which only the runs are left are part of it.
//
//test:norace
func TestRoundTripsOfKeptRuns(t *testing.T) {
	for threads, runs := range map[int]int{30: 3, 3: 300} {
		dsn := pgtest.DSN(t)
		writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
		var kept []*lineage.Thread
		want := make(map[lineage.ThreadID][]lineage.SpanRef)
		for i := range threads {
			thread, err := writer.CreateThread(background, lineage.ThreadOptions{Keep: true})
			require.NoError(t, err)
			kept = append(kept, thread)
			main, err := thread.Active(background)
			require.NoError(t, err)
			first, err := main.Extend(background, lineage.User(fmt.Sprint("thread ", i)))
			require.NoError(t, err)
			want[thread.ID()] = first
			if i > 2 && runs > 10 {
				continue
			}
			for j := range runs {
				fork, err := thread.CreateBranch(background, fmt.Sprint("fork ", j), lineage.BranchOptions{})
				require.NoError(t, err)
				said, err := fork.Extend(background, lineage.User(fmt.Sprint(i, " in fork ", j)), lineage.User("again"))
				require.NoError(t, err)
				want[thread.ID()] = append(want[thread.ID()], said...)
				require.NoError(t, thread.DeleteBranch(background, fmt.Sprint("fork ", j)))
			}
		}
		pool, trips := countedTrips(t, dsn)
		s := lineage.New(handle(t, pool, "s"))
		record, err := s.View().Thread(background, kept[0].ID())
		require.NoError(t, err)
		var one, own, all backend.Reach
		trips(16, fmt.Sprintf("reach of a thread with %d runs", runs), func() {
			one, err = backend.ReachOf(background, s.View(), record)
			require.NoError(t, err)
		})
		trips(10, fmt.Sprintf("own runs of a thread with %d", runs), func() {
			own, err = backend.OwnReach(background, s.View(), kept[0].ID())
			require.NoError(t, err)
		})
		trips(10+10*threads*runs/300, fmt.Sprintf("reach of %d threads with %d runs", threads, runs), func() {
			all, err = backend.AtOnce(background, s.View(), func(state backend.Snapshot) (backend.Reach, error) {
				var records []*structure.Thread
				for record, err := range state.Threads(background, structure.ThreadID{}) {
					require.NoError(t, err)
					records = append(records, record)
				}
				return backend.ReachOfAll(background, state, records)
			})
			require.NoError(t, err)
		})
		for id, said := range want {
			for _, at := range said {
				require.True(t, all.Has(at))
				require.Equal(t, id == kept[0].ID(), one.Has(at))
				require.Equal(t, id == kept[0].ID(), own.Has(at))
			}
		}
	}
}

// The uses of a content are read in pages, whatever is in the messages that have it: pieces, forms and large metadata, each in a
// thread and a commit of its own. An erasure adds what it takes to see that they are not erased.
//
//test:norace
func TestRoundTripsOfUses(t *testing.T) {
	for uses, pages := range map[int]int{30: 2, 100: 3} {
		dsn := pgtest.DSN(t)
		writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
		var want []lineage.SpanRef
		for i := range uses {
			thread, err := writer.CreateThread(background, lineage.ThreadOptions{})
			require.NoError(t, err)
			c, err := thread.Active(background)
			require.NoError(t, err)
			item := lineage.User("said by all")
			switch i % 3 {
			case 1:
				item = lineage.Item{Kind: lineage.Message, Role: "user", Type: content.TypeJSON, Body: fmt.Appendf(nil, `{"role":"user","n%d":1,"content":[{"type":"text","text":"said by all"},{"type":"text","text":"said in %d"}]}`, i, i)}
			case 2:
				item.Metadata = fmt.Appendf(nil, `{"in":%d,"padding":"%s"}`, i, strings.Repeat("-", 2000))
			}
			_, err = c.Extend(background, lineage.User(fmt.Sprint("before ", i)), item)
			require.NoError(t, err)
			tip, err := c.Tip(background)
			require.NoError(t, err)
			want = append(want, tip)
		}
		pool, trips := countedTrips(t, dsn)
		where := func(most int) {
			t.Helper()
			store := lineage.New(handle(t, pool, "s"))
			trips(most, fmt.Sprint(uses, " uses"), func() {
				var got []lineage.SpanRef
				for e, err := range store.Where(background, content.Sum([]byte("said by all"))) {
					require.NoError(t, err)
					switch i := len(got); i % 3 {
					case 0:
						require.Equal(t, "said by all", string(e.Body))
					case 1:
						require.Len(t, e.Pieces, 2)
						require.Contains(t, string(e.Body), fmt.Sprintf(`"said in %d"`, i))
					case 2:
						require.Contains(t, string(e.Metadata), fmt.Sprintf(`{"in":%d,`, i))
					}
					got = append(got, e.Span)
				}
				require.Equal(t, want, got)
			})
		}
		where(4 + 6*pages)
		require.NoError(t, writer.Erase(background, content.Sum([]byte("before 0"))))
		where(4 + 7*pages)
	}
}

// The span after the last one of a run is known not to be there, so the server does not look for it. When another process
// adds it first, the next commit is judged again.
func TestNextSpanIsNotLookedFor(t *testing.T) {
	pool := newPool(t, pgtest.DSN(t), nil)
	e, other := handle(t, pool, "s"), handle(t, pool, "s")
	thread := tell(t, e, "one", "two")
	main, err := thread.Active(background)
	require.NoError(t, err)
	tip, err := main.Tip(background)
	require.NoError(t, err)
	e.writing.Lock()
	is, known := e.warm.look(keys.Span(tip))
	require.True(t, known)
	require.NotEmpty(t, is)
	tip.Seq++
	is, known = e.warm.look(keys.Span(tip))
	require.True(t, known)
	require.Nil(t, is)
	e.writing.Unlock()
	theirs, err := lineage.New(other).Context(background, main.ID())
	require.NoError(t, err)
	_, err = theirs.Extend(background, lineage.User("three"))
	require.NoError(t, err)
	_, err = main.Extend(background, lineage.User("four"))
	require.NoError(t, err)
	requireSaid(t, other, thread, "one", "two", "three", "four")
	requireSound(t, e)
}

// A message that is named by a part of its run's id is found in pages of runs, whatever the number of runs and forks. All runs
// are the same ones as by their forks.
//
//test:norace
func TestRoundTripsOfShortAddresses(t *testing.T) {
	for _, threads := range []int{20, 150} {
		dsn := pgtest.DSN(t)
		writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
		var some *lineage.Context
		for i := range threads {
			thread, err := writer.CreateThread(background, lineage.ThreadOptions{})
			require.NoError(t, err)
			c, err := thread.Active(background)
			require.NoError(t, err)
			for depth := range 3 {
				_, err = c.Extend(background, lineage.User(fmt.Sprint(i, " at ", depth)))
				require.NoError(t, err)
				fork, err := c.Fork(background, lineage.ForkOptions{})
				require.NoError(t, err)
				_, err = c.Extend(background, lineage.User(fmt.Sprint(i, " after ", depth)))
				require.NoError(t, err)
				c = fork
			}
			if some == nil {
				_, err = c.Extend(background, lineage.User("this one"))
				require.NoError(t, err)
				some = c
			}
		}
		tip, err := some.Tip(background)
		require.NoError(t, err)
		pool, trips := countedTrips(t, dsn)
		store := lineage.New(handle(t, pool, "s"))
		var found *refs.Ref
		trips(12, fmt.Sprint("a short address beside ", threads, " threads"), func() {
			found, err = refs.New(store, nil).Find(background, refs.ShortSpan(tip))
			require.NoError(t, err)
		})
		require.Equal(t, tip, found.Span)

		s, err := store.View().Snapshot(background)
		require.NoError(t, err)
		defer s.Close()
		byForks := struct{ backend.Reader }{s}
		require.ElementsMatch(t, runsOf(t, byForks), runsOf(t, s))
		require.Len(t, runsOf(t, s), 3*threads+1) // a fork has a run of its own from its first message on
	}
}

// The same within half of the threads: what these lead to is read in pages of threads, also what one has of the others.
//
//test:norace
func TestRoundTripsOfShortAddressesWithin(t *testing.T) {
	for threads, pages := range map[int]int{40: 1, 240: 2} {
		dsn := pgtest.DSN(t)
		writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
		var mine, others []lineage.SpanRef
		var scope *lineage.Thread
		for i := range threads {
			user := []string{"mine", "theirs"}[i%2]
			thread, err := writer.CreateThread(background, lineage.ThreadOptions{UserID: user, Title: fmt.Sprint("thread ", i)})
			require.NoError(t, err)
			c, err := thread.Active(background)
			require.NoError(t, err)
			said, err := c.Extend(background, lineage.User(fmt.Sprint(i)), lineage.User(fmt.Sprint(i, " again")), lineage.User(fmt.Sprint(i, " at last")))
			require.NoError(t, err)
			_, err = thread.SetCheckpoint(background, "point", lineage.CheckpointOptions{At: said[1]})
			require.NoError(t, err)
			if fork, err := c.Fork(background, lineage.ForkOptions{}); i%10 < 2 {
				require.NoError(t, err)
				_, err = fork.Extend(background, lineage.User(fmt.Sprint(i, " forked")))
				require.NoError(t, err)
			}
			switch {
			case user == "theirs":
				others = append(others, said...)
			case scope == nil:
				scope = thread
			default:
				mine = append(mine, said...)
			}
		}
		_, err := scope.CreateBranch(background, "taken", lineage.BranchOptions{At: others[1]})
		require.NoError(t, err)
		pool, trips := countedTrips(t, dsn)
		store := lineage.New(handle(t, pool, "s"))
		within := func() *refs.Resolver {
			thread, err := store.Thread(background, scope.ID())
			require.NoError(t, err)
			return refs.New(store, thread).Within(func(t *structure.Thread) bool { return t.UserID == "mine" }, store.FindThread)
		}
		for at, known := range map[lineage.SpanRef]bool{mine[0]: true, mine[len(mine)-1]: true, others[0]: true, others[1]: true, others[2]: false, others[len(others)-1]: false} {
			r := within()
			trips(48+8*pages, fmt.Sprint("a short address within half of ", threads, " threads"), func() {
				found, err := r.Find(background, refs.ShortSpan(at))
				if !known {
					require.ErrorIs(t, err, lineage.ErrNotFound)
					return
				}
				require.NoError(t, err)
				require.Equal(t, at, found.Span)
			})
		}
	}
}

func runsOf(t *testing.T, r backend.Reader) (all []structure.RunInfo) {
	t.Helper()
	for run, err := range backend.AllRuns(background, r) {
		require.NoError(t, err)
		all = append(all, run)
	}
	return all
}

// An export reads threads together, with their branches, other contexts and prompts, and then each history.
//
//test:norace
func TestRoundTripsOfExports(t *testing.T) {
	const threads = 70
	dsn := pgtest.DSN(t)
	writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
	prompt := "Be brief."
	for i := range threads {
		thread, err := writer.CreateThread(background, lineage.ThreadOptions{Title: fmt.Sprint("thread ", i)})
		require.NoError(t, err)
		main, err := thread.Active(background)
		require.NoError(t, err)
		_, err = main.Extend(background, lineage.User(fmt.Sprint("question ", i)), lineage.Assistant("answer"))
		require.NoError(t, err)
		if i%10 == 0 {
			other, err := thread.CreateBranch(background, "other", lineage.BranchOptions{Overrides: lineage.Overrides{SystemPrompt: &prompt}})
			require.NoError(t, err)
			_, err = other.Extend(background, lineage.User("another question"))
			require.NoError(t, err)
			_, err = other.Fork(background, lineage.ForkOptions{})
			require.NoError(t, err)
		}
	}
	var want, got bytes.Buffer
	require.NoError(t, export.Write(background, writer, &want, export.OpenAI, export.Options{}))
	require.Equal(t, threads+threads/10, bytes.Count(want.Bytes(), []byte("\n")))
	pool, trips := countedTrips(t, dsn)
	s := lineage.New(handle(t, pool, "s"))
	trips(5*threads, "export of all", func() {
		require.NoError(t, export.Write(background, s, &got, export.OpenAI, export.Options{}))
	})
	require.Equal(t, want.String(), got.String())
}

// writerFunc is a writer that is a function.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Threads that are read together are written one after the other. One that is deleted and collected meanwhile is left out.
func TestExportDuringCollection(t *testing.T) {
	dsn := pgtest.DSN(t)
	own, others := newPool(t, dsn, nil), newPool(t, dsn, nil)
	for _, format := range export.Formats() {
		e, other := handle(t, own, string(format)), handle(t, others, string(format))
		tell(t, e, "first", strings.Repeat("long ", 100_000))
		second := tell(t, other, "second")
		tell(t, e, "third")
		var b bytes.Buffer
		w := writerFunc(func(part []byte) (int, error) {
			if b.Len() == 0 {
				require.NoError(t, second.Delete(background))
				_, err := other.Collect(background, all)
				require.NoError(t, err)
			}
			return b.Write(part)
		})
		require.NoError(t, export.Write(background, lineage.New(e), w, format, export.Options{}), format)
		require.Contains(t, b.String(), "third", format)
		require.NotContains(t, b.String(), "second", format)
	}
}

// Session files are found, restored and shown in a few round trips for many of them, and for many lines. Each line has metadata and a
// form of its own.
//
//test:norace
func TestRoundTripsOfSessions(t *testing.T) {
	const files, lines = 70, 200
	dsn := pgtest.DSN(t)
	writer := lineage.New(handle(t, newPool(t, dsn, nil), "s"))
	home := t.TempDir()
	sessions := make(map[string]string) // by path
	for i := range files {
		id := fmt.Sprintf("11111111-2222-3333-4444-%012d", i)
		var text, parent strings.Builder
		parent.WriteString("null")
		for j := range lines {
			if i > 0 && j == 2 { // one is long
				break
			}
			fmt.Fprintf(&text, `{"type":"user","uuid":"%[1]d-%[2]d","parentUuid":%[3]s,"key%[2]d":%[2]d,"sessionId":"%[4]s","cwd":"/src","timestamp":"2026-01-02T03:04:05.678Z","message":{"role":"user","content":[{"type":"text","text":"hello %[2]d","own%[2]d":1}]}}`+"\n", i, j, parent.String(), id)
			parent.Reset()
			fmt.Fprintf(&parent, `"%d-%d"`, i, j)
		}
		path := filepath.Join(home, ".claude", "projects", "-src", id+".jsonl")
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
		sessions[path] = text.String()
	}
	require.NoError(t, follow.Run(background, writer, follow.Options{
		Once: true, Machine: follow.Machine{ID: strings.Repeat("ab", 16), Secret: "s"},
		Environment: &follow.Environment{Home: home, OS: "linux", Getenv: func(string) string { return "" }},
	}))
	pool, trips := countedTrips(t, dsn)
	s := lineage.New(handle(t, pool, "s"))
	var long *follow.Source
	found := 0
	trips(20, "finding sources", func() {
		for source, err := range follow.Sources(background, s) {
			require.NoError(t, err)
			found++
			if strings.HasSuffix(source.About.Path, "-000000000000.jsonl") {
				long = source
			}
		}
	})
	require.Equal(t, files, found)
	trips(40, "restoring a file", func() {
		var out bytes.Buffer
		require.NoError(t, long.Export(background, &out))
		require.Equal(t, sessions[long.About.Path], out.String())
	})
	x := searching(t, s, search.Options{})
	require.NoError(t, x.Update(background))
	trips(20, "a search", func() {
		hits, err := x.Search(background, search.Query{Text: "hello", Limit: 20})
		require.NoError(t, err)
		require.Len(t, hits, 20)
	})
	thread, err := s.FindThread(background, long.Recorded.Session)
	require.NoError(t, err)
	main, err := thread.Active(background)
	require.NoError(t, err)
	trips(40, "a history", func() {
		n := 0
		for e, err := range main.Entries(background, lineage.Window{}) {
			require.NoError(t, err)
			require.NotEmpty(t, e.Metadata)
			n++
		}
		require.Equal(t, lines, n)
	})
}
