package postgres

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// entriesOf returns the entries of a model in order.
func entriesOf(model map[string][]byte) (all []index.Entry) {
	for _, k := range slices.Sorted(maps.Keys(model)) {
		all = append(all, index.Entry{Key: []byte(k), Value: model[k]})
	}
	return all
}

var (
	changedKey = rapid.Custom(func(t *rapid.T) string {
		table := rapid.SampledFrom([]byte{keys.TableTip, keys.TableLastMessage, keys.TableThread}).Draw(t, "table")
		key := make([]byte, laterKeys[table])
		key[0] = table
		copy(key[1:], rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 3).Draw(t, "rest"))
		return string(key)
	})
	changedValue = rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 3).Filter(func(b []byte) bool { return b != nil }))
)

// Rows change entries that a batch and the server have as well: what a table reads is what a map has.
func TestUnfoldedModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) map[string][]byte {
			return rapid.MapOfN(changedKey, changedValue, 0, 12).Draw(t, name)
		}
		stored, batch := draw("stored"), draw("batch")
		maps.DeleteFunc(stored, func(_ string, v []byte) bool { return v == nil })
		model := maps.Clone(stored)
		var u *unfolded
		var later []index.Entry
		size := 0
		for range rapid.IntRange(0, 4).Draw(t, "rows") {
			row := draw("row")
			b := encodeChanges(entriesOf(row))
			decoded, err := decodeChanges(b)
			require.NoError(t, err)
			require.Equal(t, entriesOf(row), decoded)
			before := entriesOfUnfolded(u)
			next := u.with(decoded, len(b), 1)
			require.Equal(t, before, entriesOfUnfolded(u), "it does not change")
			u, size = next, size+len(b)
			later = append(later, decoded...)
			maps.Copy(model, row)
		}
		require.Equal(t, entriesOfUnfolded(u), entriesOfUnfolded((*unfolded)(nil).with(latestOf(later), size, 1)), "it is the same at once")
		require.Equal(t, size, u.bytes())
		tab := newStateReader(background, newCache(state{}, 0), [16]byte{}, state{unfolded: u}, func(_ context.Context, n need) (f fetchResult, err error) {
			return fetchFrom(stored, n), nil
		})
		check := func() {
			is := maps.Clone(model)
			maps.DeleteFunc(is, func(_ string, v []byte) bool { return v == nil })
			for _, k := range slices.Sorted(maps.Keys(model)) {
				v, ok, err := tab.Get([]byte(k))
				require.NoError(t, err)
				require.Equal(t, is[k] != nil, ok)
				require.Equal(t, is[k], v)
			}
			bounds := []string{changedKey.Draw(t, "from"), changedKey.Draw(t, "to")}
			slices.Sort(bounds)
			maps.DeleteFunc(is, func(k string, _ []byte) bool { return k < bounds[0] || k >= bounds[1] })
			want := entriesOf(is)
			var got []index.Entry
			for e, err := range tab.Scan([]byte(bounds[0]), []byte(bounds[1])) {
				require.NoError(t, err)
				got = append(got, index.Entry{Key: bytes.Clone(e.Key), Value: append([]byte{}, e.Value...)})
			}
			require.Equal(t, want, got)
			last, ok, err := tab.Last([]byte(bounds[0]), []byte(bounds[1]))
			require.NoError(t, err)
			if require.Equal(t, len(want) > 0, ok); ok {
				require.Equal(t, want[len(want)-1].Key, last.Key)
			}
		}
		check()
		tab.added = newAdditions()
		for k, v := range batch {
			tab.added.entries.Set([]byte(k), v)
			model[k] = v
		}
		check()
	})
}

func entriesOfUnfolded(u *unfolded) []index.Entry { return slices.Clone(u.between(nil, nil)) }

// fetchFrom answers as the server does, from a map.
func fetchFrom(stored map[string][]byte, n need) (f fetchResult) {
	f.keys = make(map[string][]byte)
	for _, k := range n.Keys {
		if v, ok := stored[string(k)]; ok {
			f.keys[string(k)] = v
		}
	}
	for _, p := range n.pages {
		var in []index.Entry
		for _, e := range entriesOf(stored) {
			if bytes.Compare(e.Key, p.From) >= 0 && (p.To == nil || bytes.Compare(e.Key, p.To) < 0) {
				in = append(in, e)
			}
		}
		if p.descending {
			slices.Reverse(in)
		}
		more := len(in) >= p.limit
		in = in[:min(len(in), p.limit)]
		page := foundPage{entries: in, more: more}
		if len(in) > 0 {
			page.next = in[len(in)-1].Key
		}
		f.pages = append(f.pages, page)
	}
	return f
}

// What is decoded is encoded to the same bytes, if each number has the least length, and can be folded: groups have its spans.
// What is damaged is refused.
func FuzzDecodeChanges(f *testing.F) {
	key := keys.Of(keys.TableTip, make([]byte, 16))
	for _, k := range [][]byte{keys.Of(keys.TableSpan, make([]byte, 24)), {keys.TableSpan, 1, 2}, {keys.TableThread, 1}, {keys.TableLastMessage, 1}, keys.Of(keys.TableSpan, make([]byte, 25))} {
		f.Add(encodeChanges([]index.Entry{{Key: k, Value: []byte{0, 0}}}))
		f.Add(encodeChanges([]index.Entry{{Key: k}}))
	}
	f.Add(encodeChanges([]index.Entry{{Key: keys.Of(keys.TableSpan, make([]byte, 23), []byte{1}), Value: keys.AppendPosition(nil, journal.Position{Offset: -1})}}))
	f.Add(encodeChanges([]index.Entry{spanEntry(1, 15, journal.Position{Segment: 1, Offset: 3}), spanEntry(1, 16, journal.Position{Offset: math.MaxInt64}), spanEntry(1, 17, journal.Position{})}))
	f.Add(encodeChanges([]index.Entry{{Key: key, Value: []byte("tip")}, {Key: keys.Of(keys.TableThread, make([]byte, 16))}}))
	f.Add([]byte{changesVersion, 1, 'p', 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{changesVersion + 1})
	f.Add([]byte{0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := decodeChanges(b)
		if err != nil {
			require.Empty(t, all)
			if len(b) > 0 && b[0] <= changesVersion {
				require.ErrorIs(t, err, backend.ErrCorrupt)
			} else {
				require.ErrorIs(t, err, backend.ErrNewerFormat)
			}
			return
		}
		again, err := decodeChanges(encodeChanges(all))
		require.NoError(t, err)
		require.Equal(t, all, again)
		tab := newStateReader(background, newCache(state{}, 0), [16]byte{}, state{unfolded: (*unfolded)(nil).with(all, len(b), 1)}, func(context.Context, need) (fetchResult, error) { return fetchResult{}, nil })
		tab.added = newAdditions()
		m, err := newOutput(tab, 2, true)
		if err != nil { // a record of a thread
			require.ErrorIs(t, err, backend.ErrCorrupt)
			return
		}
		var spans []index.Entry
		for _, e := range m.entries {
			if e.Key[0] == keys.TableSpan {
				some, err := decodeGroup(e.Key, e.Value)
				require.NoError(t, err)
				spans = append(spans, some...)
			}
		}
		for _, e := range all {
			if e.Key[0] == keys.TableSpan {
				require.NotEmpty(t, spans)
				require.Equal(t, e.Key, spans[0].Key)
				was, err := keys.ReadSpanLocation(e.Value)
				require.NoError(t, err)
				is, err := keys.ReadSpanLocation(spans[0].Value)
				require.NoError(t, err)
				require.Equal(t, was, is)
				spans = spans[1:]
			}
		}
		require.Empty(t, spans)
	})
}

// TestFold has two processes write alternately, with folds between: each reads what both wrote, and a process that opens the
// store then as well. A snapshot from before the folds reads the same after them.
//
//test:norace
func TestFold(t *testing.T) {
	for _, most := range []int{0, 300, 64 << 10} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			folding(t, most)
			dsn := pgtest.DSN(t)
			pool := newPool(t, dsn, nil)
			a, b := handle(t, pool, "s"), handle(t, newPool(t, dsn, nil), "s")
			threads := []*lineage.Thread{tell(t, a, "0"), tell(t, b, "0")}
			gone := tell(t, a, "gone")
			texts := []string{"0"}
			old, err := b.Snapshot(background)
			require.NoError(t, err)
			was := inOrder(t, old)
			require.Len(t, was, 3)
			for i := range 12 {
				texts = append(texts, fmt.Sprint(i+1))
				for k, e := range []*Engine{a, b} {
					thread, err := lineage.New(e).Thread(background, threads[(i+k)%2].ID())
					require.NoError(t, err)
					main, err := thread.Active(background)
					require.NoError(t, err)
					_, err = main.Extend(background, lineage.User(texts[i+1]))
					require.NoError(t, err)
				}
				if i == 5 {
					require.NoError(t, gone.Delete(background))
				}
				requireSaid(t, a, threads[1], texts...)
				requireSaid(t, b, threads[0], texts...)
			}
			require.Equal(t, was, inOrder(t, old))
			witness := handle(t, pool, "s")
			for _, e := range []*Engine{a, b, witness} {
				requireSaid(t, e, threads[0], texts...)
				require.Len(t, inOrder(t, e), 2)
				require.Equal(t, inOrder(t, a), inOrder(t, e))
				_, err := e.Thread(background, gone.ID())
				require.ErrorIs(t, err, backend.ErrNotFound)
				requireSound(t, e)
			}
			var folded, n uint64
			var left int
			require.NoError(t, pool.QueryRow(background, `SELECT folded, n, unfolded FROM lineage_head h`, exec).Scan(&folded, &n, &left))
			switch most {
			case 0:
				require.Equal(t, n, folded)
				require.Zero(t, left)
			case 300:
				require.NotZero(t, folded)
			default:
				require.Zero(t, folded)
				require.NotZero(t, left)
			}
		})
	}
}

type lister interface {
	ListThreads(context.Context, backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error]
}

// inOrder returns the threads of a state in order, with the times of their last messages.
func inOrder(t testing.TB, of lister) (lines []string) {
	for l, err := range of.ListThreads(background, backend.ThreadQuery{}) {
		require.NoError(t, err)
		lines = append(lines, fmt.Sprint(l.ID, l.LastMessage))
	}
	return lines
}

// Pruning leaves what is unfolded: a process that opens the store reads it.
func TestPruneLeavesTheUnfolded(t *testing.T) {
	former := formerTime
	formerTime = 0
	t.Cleanup(func() { formerTime = former })
	folding(t, 300)
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	thread := tell(t, e, "0")
	main, err := thread.Active(background)
	require.NoError(t, err)
	texts := []string{"0"}
	for i := range 20 {
		texts = append(texts, fmt.Sprint(i+1))
		_, err := main.Extend(background, lineage.User(texts[i+1]))
		require.NoError(t, err)
		require.NoError(t, e.log.prune(background, e.head.epoch))
		requireSaid(t, handle(t, pool, "s"), thread, texts...)
	}
	requireSound(t, e)
}

// Changes take the places of those that are folded: two processes write, a third one reads after each commit, and a state from
// before is read as it was. There are never more rows than may be unfolded.
//
//test:norace
func TestChangesTakePlaces(t *testing.T) {
	folding(t, 64<<10)
	was := mostChanges
	mostChanges = 5
	t.Cleanup(func() { mostChanges = was })
	dsn := pgtest.DSN(t)
	pool := newPool(t, dsn, nil)
	engines := []*Engine{handle(t, pool, "s"), handle(t, newPool(t, dsn, nil), "s")}
	reader := handle(t, newPool(t, dsn, nil), "s")
	thread := tell(t, engines[0], "0")
	texts := []string{"0"}
	var old backend.Snapshot
	var order []string
	for i := range 23 {
		main, err := lineage.New(engines[i%2]).Thread(background, thread.ID())
		require.NoError(t, err)
		branch, err := main.Active(background)
		require.NoError(t, err)
		texts = append(texts, fmt.Sprint(i+1))
		_, err = branch.Extend(background, lineage.User(texts[i+1]))
		require.NoError(t, err)
		createThread(t, engines[i/3%2], backend.Full)
		requireSaid(t, reader, thread, texts...)
		requireSaid(t, handle(t, pool, "s"), thread, texts...)
		require.Len(t, inOrder(t, reader), i+2)
		if i == 10 {
			old, err = reader.Snapshot(background)
			require.NoError(t, err)
			order = inOrder(t, old)
		}
		var rows int
		require.NoError(t, pool.QueryRow(background, `SELECT count(*) FROM lineage_former WHERE changes IS NOT NULL`, exec).Scan(&rows))
		require.LessOrEqual(t, rows, 5)
	}
	require.Equal(t, order, inOrder(t, old))
	requireSound(t, reader)
}

// Damage of what is unfolded is found, by readers and by a verification.
func TestDamagedChanges(t *testing.T) {
	folding(t, 64<<10)
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	tell(t, e, "one", "two")
	requireSound(t, e)
	_, err := pool.Exec(background, `UPDATE lineage_former SET changes = set_byte(changes, 0, 9) WHERE n = 0 AND part = 0`, exec)
	require.NoError(t, err)
	_, err = New(background, pool, Options{Store: "s", Unsafe: true})
	require.ErrorIs(t, err, backend.ErrNewerFormat)
	_, err = pool.Exec(background, `UPDATE lineage_former SET changes = '\x01ff' WHERE n = 0 AND part = 0`, exec)
	require.NoError(t, err)
	_, err = New(background, pool, Options{Store: "s", Unsafe: true})
	require.ErrorIs(t, err, backend.ErrCorrupt)
	_, err = pool.Exec(background, `UPDATE lineage_former SET changes = NULL WHERE n = 0 AND part = 0`, exec)
	require.NoError(t, err)
	_, err = New(background, pool, Options{Store: "s", Unsafe: true})
	require.ErrorIs(t, err, backend.ErrCorrupt)
	_, err = pool.Exec(background, `UPDATE lineage_former SET changes = $1 WHERE n = 0 AND part = 0`, exec, encodeChanges([]index.Entry{{Key: keys.Of(keys.TableTip, make([]byte, 16))}}))
	require.NoError(t, err)
	found := 0
	for _, err := range handle(t, pool, "s").Verify(background, backend.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		found++
	}
	require.Positive(t, found)
}

// Changes that are missing are found by whoever reads the state: readers, and the next writer, who would take the place of
// others.
func TestMissingChanges(t *testing.T) {
	for _, part := range []int{0, 3, 5} {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			folding(t, 64<<10)
			pool := newPool(t, pgtest.DSN(t), nil)
			e := handle(t, pool, "s")
			var old *Engine
			for i := range 6 {
				if i == 3 {
					old = handle(t, pool, "s") // it knows the first parts
				}
				createThread(t, e, backend.Full)
			}
			changes := func() (all [][]byte) {
				require.NoError(t, pool.QueryRow(background, `SELECT array_agg(changes ORDER BY part) FROM lineage_former WHERE n = 0`, exec).Scan(&all))
				return all
			}
			require.Len(t, changes(), 6)
			_, err := pool.Exec(background, `DELETE FROM lineage_former WHERE n = 0 AND part = $1`, exec, part)
			require.NoError(t, err)
			left := changes()
			missing := func(err error) {
				t.Helper()
				require.ErrorIs(t, err, backend.ErrCorrupt)
				require.ErrorContains(t, err, "lineage_former")
			}
			_, err = New(background, pool, Options{Store: "s", Unsafe: true})
			missing(err)
			if part >= 3 {
				_, err = old.Head(background)
				missing(err)
				_, commit := threadCommit()
				_, err = old.Apply(background, commit, backend.Options{})
				missing(err)
			}
			require.Equal(t, left, changes(), "nobody took the place of others")
		})
	}
}

// TestOpenVersion3 opens tables of version 3, whose entries are all versions. Programs of that version that still run can
// neither write nor read nor prune any more. Sessions of that version go on, and are forgotten.
func TestOpenVersion3(t *testing.T) {
	folding(t, 0) // as that version wrote
	pool := newPool(t, pgtest.DSN(t), nil)
	was := handle(t, pool, "s")
	kept := tell(t, was, "one", "two", "three")
	request := func(e *Engine, session byte, sequence uint64) (backend.Receipt, error) {
		_, c := threadCommit()
		return e.Apply(background, c, backend.Options{Once: &backend.Once{Session: [16]byte{session}, Sequence: sequence}})
	}
	first, err := request(was, 7, 1)
	require.NoError(t, err)
	want, order := history(t, was), inOrder(t, was)
	for _, statement := range []string{
		`ALTER TABLE lineage_former DROP COLUMN changes`, `ALTER TABLE lineage_head DROP COLUMN folded, DROP COLUMN unfolded`,
		`ALTER TABLE lineage_head RENAME COLUMN numbers TO counts`, `ALTER TABLE lineage_former RENAME COLUMN made_at TO at`,
		`UPDATE lineage_entry SET value = substr(value, 6) WHERE substr(key, 1, 1) = 'o' AND octet_length(key) = 17`, // the time
		`DELETE FROM lineage_entry WHERE substr(key, 1, 1) IN ('Y', 'a')`,                                            // another form
		`DELETE FROM lineage_durable`,
		`ALTER TABLE lineage_durable DROP COLUMN slot, ADD PRIMARY KEY (store)`,
		`DROP TABLE lineage_search, ` + strings.Join(searchTables, ", "),
		`UPDATE lineage_schema SET version = 3`,
	} {
		_, err := pool.Exec(background, statement, exec)
		require.NoError(t, err)
	}
	mostUnfolded = 64 << 10
	parallel(2, func(int) {
		e, err := New(background, pool, Options{Store: "s", Unsafe: true})
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		tell(t, e, "more")
		require.NoError(t, e.Close())
	})
	e := handle(t, pool, "s")
	require.Equal(t, want, history(t, e)[:len(want)])
	require.Equal(t, order, inOrder(t, e)[2:])
	requireSaid(t, e, kept, "one", "two", "three")
	again, err := request(e, 7, 1)
	require.NoError(t, err)
	require.Equal(t, backend.Receipt{Cursor: first.Cursor, Repeated: true}, again)
	second, err := request(e, 7, 2)
	require.NoError(t, err)
	_, err = request(e, forgetEvery, 1)
	require.NoError(t, err)
	is, err := e.Outcome(background, backend.Once{Session: [16]byte{7}, Sequence: 2})
	require.NoError(t, err)
	require.Equal(t, second.Cursor, is.Cursor)
	require.NoError(t, e.Forget(background, [16]byte{7}))
	requireSound(t, e)
	for statement, problem := range map[string]string{
		`SELECT counts FROM lineage_head`: "counts",
		`INSERT INTO lineage_durable (store, n) SELECT store, 1 FROM lineage_store ON CONFLICT (store) DO UPDATE SET n = 1`:                                                      "no unique or exclusion constraint",
		`SELECT n FROM lineage_former WHERE at < now()`:                                                                                                                          `column "at"`,
		`INSERT INTO lineage_head (store, epoch, first, n, id, numbers) SELECT store, 0, 1, 1, 1, '' FROM lineage_store ON CONFLICT (store, epoch) DO UPDATE SET n = excluded.n`: "folded",
		`SELECT totals FROM lineage_head`: "totals",
		`SELECT sums FROM lineage_head`:   "sums",
		`SELECT tally FROM lineage_head`:  "tally",
	} {
		_, err := pool.Exec(background, statement, exec)
		require.ErrorContains(t, err, problem)
	}
}

// A thread that was created and changed within what is unfolded has one place in the order, before and after the fold.
func TestOrderOfAThreadThatChanges(t *testing.T) {
	folding(t, 64<<10)
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	id, commit := threadCommit()
	apply := func(c *structure.Commit) {
		_, err := e.Apply(background, c, backend.Options{})
		require.NoError(t, err)
	}
	apply(commit)
	apply(&structure.Commit{Records: []structure.Record{&structure.Thread{ID: id, Title: "another"}}})
	createThread(t, e, backend.Normal)
	require.Len(t, inOrder(t, e), 2)
	mostUnfolded = 0
	createThread(t, e, backend.Normal)
	require.Len(t, inOrder(t, e), 3)
	require.Equal(t, inOrder(t, e), inOrder(t, handle(t, pool, "s")))
	requireSound(t, e)
}

// TestRunsInACircle prefetches damaged runs that follow each other.
func TestRunsInACircle(t *testing.T) {
	r := newStateReader(background, newCache(state{}, 0), [16]byte{}, state{}, func(context.Context, need) (fetchResult, error) { return fetchResult{}, nil })
	runs := []structure.RunID{{1}, {2}, {3}}
	for i, id := range runs {
		parent := structure.SpanRef{Run: runs[(i+1)%len(runs)], Seq: 1}
		r.set(keys.Of(keys.TableRun, id[:]), keys.AppendRun(nil, structure.RunInfo{Run: structure.Run{ID: id, Parent: parent}}))
	}
	require.NoError(t, r.prefetchPaths(background, runs[:1]))
}
