package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// spanEntry is the entry of a span, with a digest that tells it from others.
func spanEntry(run byte, place uint64, at journal.Position) index.Entry {
	ref := structure.SpanRef{Run: structure.RunID{run}, Seq: place}
	digest := bytes.Repeat([]byte{run, byte(place)}, 16)
	return index.Entry{Key: keys.Span(ref), Value: append(keys.AppendPosition(nil, at), digest...)}
}

// Turns of several runs are folded now and then: what is read of a state before and after, by key, by range and from the end,
// is what a map has. The table has one entry for the places that share all but their last bits, with all that was folded.
//
//test:norace
func TestGroupsModel(t *testing.T) {
	defer campaign.Checks(200)() // none opens a store
	rapid.Check(t, func(t *rapid.T) {
		rows := make(map[string][]byte) // the latest version of each
		model := make(map[string][]byte)
		next := [4]uint64{1, 1, 1, 1}
		if rapid.Bool().Draw(t, "late") {
			next[3] = 1<<16 - 5
		}
		is := state{}
		fetch := func(_ context.Context, n need) (fetchResult, error) { return grouped(t, rows, n), nil }
		c := newCache(state{}, rapid.SampledFrom([]int{0, 2 << 10, 4 << 10, 6 << 10, DefaultCache}).Draw(t, "cache"))
		warm := newStateReader(background, c, [16]byte{}, is, fetch)
		most := rapid.SampledFrom([]int{0, 400, 4000, 1 << 20}).Draw(t, "most")
		was, rowsWas := mostUnfolded, mostChanges
		mostUnfolded, mostChanges = most, rapid.SampledFrom([]int{1, 3, 512}).Draw(t, "changes")
		defer func() { mostUnfolded, mostChanges = was, rowsWas }()
		turns := rapid.Uint64Range(1, 10).Draw(t, "turns")
		for number := uint64(1); number <= turns; number++ {
			if rapid.Bool().Draw(t, "cold") { // it knows what the cache has
				warm = newStateReader(background, c, [16]byte{}, warm.state, fetch)
			}
			warm.added = newAdditions()
			for range rapid.IntRange(1, 4).Draw(t, "commits") {
				run := rapid.IntRange(0, len(next)-1).Draw(t, "run")
				for range rapid.SampledFrom([]int{1, 2, 7, 15, 16, 33, 50}).Draw(t, "spans") {
					e := spanEntry(byte(run), next[run], journal.Position{Segment: uint32(number) % 3, Offset: int64(number)})
					warm.added.entries.Set(e.Key, e.Value)
					model[string(e.Key)] = e.Value
					next[run]++
				}
			}
			m, err := newOutput(warm, number, rapid.IntRange(0, 3).Draw(t, "fold") == 0)
			require.NoError(t, err)
			require.LessOrEqual(t, m.unfolded.rows(), mostChanges)
			for i, e := range m.entries {
				require.Equal(t, rows[string(e.Key)] != nil, e.replaces, "what it replaces is removed later")
				require.True(t, i == 0 || bytes.Compare(m.entries[i-1].Key, e.Key) < 0, "by key")
				if was := rows[string(e.Key)]; was != nil {
					before, err := decodeGroup(e.Key, was)
					require.NoError(t, err)
					require.Equal(t, before, e.group[:len(before)], "it has all earlier spans")
				}
				rows[string(e.Key)] = e.Value
			}
			is := warm.state
			is.Number, is.folded, is.unfolded = number, m.folded, m.unfolded
			warm.settle(is, m.entries)

			cold := newStateReader(background, c, [16]byte{}, is, fetch)
			for _, tab := range []*stateReader{warm, cold} {
				readsAs(t, tab, model, next[:])
			}
		}
	})
}

// readsAs checks what a table reads of spans.
func readsAs(t *rapid.T, tab *stateReader, model map[string][]byte, next []uint64) {
	run := byte(rapid.IntRange(0, len(next)-1).Draw(t, "run"))
	prefix := keys.Of(keys.TableSpan, (&structure.RunID{run})[:])
	want := []index.Entry{}
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if bytes.HasPrefix([]byte(k), prefix) {
			want = append(want, index.Entry{Key: []byte(k), Value: model[k]})
		}
	}
	from, to := prefix, keys.PrefixEnd(prefix)
	if rapid.IntRange(0, 3).Draw(t, "up to") == 0 { // from the start of the run
		to = keys.Span(structure.SpanRef{Run: structure.RunID{run}, Seq: rapid.Uint64Range(1, next[run]+2).Draw(t, "end")})
		want = slices.DeleteFunc(want, func(e index.Entry) bool { return bytes.Compare(e.Key, to) >= 0 })
	} else if len(want) > 0 && rapid.Bool().Draw(t, "part") {
		first := rapid.IntRange(0, len(want)-1).Draw(t, "first")
		last := rapid.IntRange(first, len(want)-1).Draw(t, "last")
		from, to, want = want[first].Key, keys.PrefixEnd(want[last].Key), want[first:last+1]
		if rapid.Bool().Draw(t, "after") {
			from, want = append(bytes.Clone(from), 0), want[1:]
		}
	}
	if rapid.Bool().Draw(t, "ahead") {
		require.NoError(t, tab.Prefetch(background, read.Need{Ranges: []read.Range{{From: from, To: to}}, Lasts: []read.Range{read.Under(prefix), {From: from, To: to}}}))
	}
	got := []index.Entry{}
	for e, err := range tab.Scan(from, to) {
		require.NoError(t, err)
		got = append(got, e)
	}
	require.Equal(t, want, got)
	e, ok, err := tab.Last(from, to)
	require.NoError(t, err)
	if require.Equal(t, len(want) > 0, ok); ok {
		require.Equal(t, want[len(want)-1], e)
	}
	last, err := tab.LastSpan(structure.RunID{run})
	require.NoError(t, err)
	end := uint64(0)
	for k := range model {
		if bytes.HasPrefix([]byte(k), prefix) {
			end = max(end, keys.ReadUint64([]byte(k)[spanPrefix:]))
		}
	}
	require.Equal(t, end, last.Seq)
	for range 4 {
		ref := structure.SpanRef{Run: structure.RunID{run}, Seq: rapid.Uint64Range(1, next[run]+20).Draw(t, "place")}
		v, ok, err := tab.Get(keys.Span(ref))
		require.NoError(t, err)
		require.Equal(t, model[string(keys.Span(ref))], v)
		require.Equal(t, v != nil, ok)
	}
}

// grouped answers as the server does, from the rows of the table.
func grouped(t require.TestingT, rows map[string][]byte, n need) (f fetchResult) {
	between := func(from, to []byte) (all []index.Entry, keys [][]byte) {
		low, high := storedBounds(from, to)
		for _, k := range slices.Sorted(maps.Keys(rows)) {
			if k >= string(low) && k < string(high) {
				all, keys = append(all, index.Entry{Key: []byte(k), Value: rows[k]}), append(keys, []byte(k))
			}
		}
		return all, keys
	}
	f.keys = make(map[string][]byte)
	for _, k := range n.Keys {
		if v, ok := rows[string(storedKey(k))]; ok {
			require.NoError(t, eachRestored(storedKey(k), v, func(e index.Entry) { f.keys[string(e.Key)] = e.Value }))
		}
	}
	for _, r := range n.Ranges {
		var all []index.Entry
		some, _ := between(r.From, r.To)
		for _, e := range some {
			require.NoError(t, eachRestored(e.Key, e.Value, func(e index.Entry) { all = append(all, e) }))
		}
		f.ranges = append(f.ranges, inRange(all, r.From, r.To))
	}
	for _, r := range n.Lasts {
		var last index.Entry
		if some, _ := between(r.From, r.To); len(some) > 0 {
			e := some[len(some)-1]
			require.NoError(t, eachRestored(e.Key, e.Value, func(e index.Entry) { last = e }))
		}
		f.lasts = append(f.lasts, last)
	}
	for _, p := range n.pages {
		some, _ := between(p.From, p.To)
		if p.descending {
			slices.Reverse(some)
		}
		var into foundPage
		for _, e := range some[:min(len(some), p.limit)] {
			require.NoError(t, into.add(e.Key, e.Value, p.descending))
		}
		into.more = len(some) >= p.limit
		f.pages = append(f.pages, into)
	}
	return f
}

// What is decoded of a group is encoded to the same bytes, if each number has the least length; what is damaged is refused.
func FuzzDecodeGroup(f *testing.F) {
	var some []index.Entry
	for _, place := range []uint64{16, 18, 31} {
		some = append(some, spanEntry(1, place, journal.Position{Segment: 3, Offset: int64(40 - place)}))
	}
	value, err := encodeGroup(some)
	require.NoError(f, err)
	f.Add(some[0].Key, value)
	f.Add(some[0].Key, value[:len(value)-1])
	f.Add(some[1].Key, value)
	f.Add(some[0].Key, binary.LittleEndian.AppendUint16(nil, 0))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		all, err := decodeGroup(key, value)
		if err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt)
			return
		}
		require.NotEmpty(t, all)
		for _, e := range all {
			require.Equal(t, key, groupKey(e.Key))
			_, err := keys.ReadSpanLocation(e.Value)
			require.NoError(t, err)
		}
		again, err := encodeGroup(all)
		require.NoError(t, err)
		decoded, err := decodeGroup(key, again)
		require.NoError(t, err)
		require.Equal(t, all, decoded)
	})
}

// Two processes extend one run in batch, by one message and by many, with folds between, while snapshots and forks of places
// in the middle of groups are read. A third one finds all of it, and the entries are what the log makes.
func TestGroupsOfTwoProcesses(t *testing.T) {
	folding(t, 2000)
	dsn := pgtest.DSN(t)
	a, b := handle(t, newPool(t, dsn, nil), "s"), handle(t, newPool(t, dsn, nil), "s")
	thread := tell(t, a, "0")
	texts := []string{"0"}
	var tips []structure.SpanRef
	var states []backend.Snapshot
	for i, n := range []int{1, 13, 1, 1, 16, 40, 1, 2, 100, 1} {
		e := []*Engine{a, b}[i%2]
		main, err := lineage.New(e).Thread(background, thread.ID())
		require.NoError(t, err)
		branch, err := main.Active(background)
		require.NoError(t, err)
		var items []lineage.Item
		for range n {
			texts = append(texts, fmt.Sprint(len(texts)))
			items = append(items, lineage.User(texts[len(texts)-1]))
		}
		_, err = branch.Extend(background, items...)
		require.NoError(t, err)
		tip, err := branch.Tip(background)
		require.NoError(t, err)
		s, err := e.Snapshot(background)
		require.NoError(t, err)
		tips, states = append(tips, tip), append(states, s)
	}
	witness := handle(t, newPool(t, dsn, nil), "s")
	for _, e := range []*Engine{a, b, witness} {
		requireSaid(t, e, thread, texts...)
		for i, s := range states {
			if e != witness {
				last, err := s.Last(background, tips[i].Run)
				require.NoError(t, err)
				require.Equal(t, tips[i], last, "as of its state")
				_, err = s.Digest(background, structure.SpanRef{Run: last.Run, Seq: last.Seq + 1})
				require.ErrorIs(t, err, backend.ErrNotFound)
			}
			for _, reader := range []backend.Reader{s, e} {
				n := 0
				for step, err := range reader.Path(background, tips[i], structure.Window{}, backend.PathOptions{Bodies: true}) {
					require.NoError(t, err)
					require.Equal(t, texts[n], string(step.Blocks[0].Body))
					n++
				}
				require.Equal(t, int(tips[i].Seq), n)
			}
		}
	}
	digests := make(map[structure.SpanRef]structure.Digest)
	for _, tip := range tips {
		var err error
		digests[tip], err = a.Digest(background, tip)
		require.NoError(t, err)
	}
	requireSound(t, witness)
	emptied(t, newPool(t, dsn, nil))
	again := handle(t, newPool(t, dsn, nil), "s")
	for tip, want := range digests {
		is, err := again.Digest(background, tip)
		require.NoError(t, err)
		require.Equal(t, want, is)
	}
	requireSaid(t, again, thread, texts...)
}

// A fold knows the earlier spans of a group from the cache, from which they go while it reads other groups.
func TestFoldKeepsWhatTheCacheDrops(t *testing.T) {
	for name, limit := range map[string]int{"a small cache": 6 << 10, "other readers": DefaultCache} {
		t.Run(name, func(t *testing.T) {
			rows := make(map[string][]byte)
			for run := byte(1); run <= 6; run++ {
				var some []index.Entry
				for place := uint64(1); place <= 14; place++ {
					some = append(some, spanEntry(run, place, journal.Position{Offset: 1}))
				}
				v, err := encodeGroup(some)
				require.NoError(t, err)
				rows[string(groupKey(some[0].Key))] = v
			}
			is := state{head: head{Cursor: backend.Cursor{Number: 1}}}
			c := newCache(is, limit)
			fold := newStateReader(background, c, [16]byte{}, is, func(_ context.Context, n need) (fetchResult, error) {
				if limit == DefaultCache { // other readers of this process, meanwhile
					for i := range uint64(9) {
						c.putRow(1000+i, []embedded.Sequenced{{Payload: make([]byte, 8<<20)}})
					}
				}
				return grouped(t, rows, n), nil
			})
			for place := uint64(1); place <= 14; place++ { // another reader
				e := spanEntry(1, place, journal.Position{Offset: 1})
				c.putEntry(e.Key, e.Value, 1)
			}
			fold.added = newAdditions()
			for run := byte(1); run <= 6; run++ {
				e := spanEntry(run, 15, journal.Position{Offset: 2})
				fold.added.entries.Set(e.Key, e.Value)
			}
			m, err := newOutput(fold, 2, true)
			require.NoError(t, err)
			require.Len(t, m.entries, 6)
			for _, e := range m.entries {
				require.Len(t, e.group, 15)
				require.True(t, e.replaces)
			}
		})
	}
}

// A fold with a cache that has less than it reads.
//
//test:norace
func TestFoldWithASmallCache(t *testing.T) {
	folding(t, 1)
	pool := newPool(t, pgtest.DSN(t), nil)
	w := handle(t, pool, "s")
	var all []*counter
	for range 8 {
		c := beginCounter(t, w)
		for range 14 {
			_, err := c.add(background, w, backend.Normal)
			require.NoError(t, err)
		}
		all = append(all, c)
	}
	e, err := New(background, pool, Options{Store: "s", Unsafe: true, CacheBytes: 8 << 10})
	require.NoError(t, err)
	defer e.Close()
	var commit structure.Commit
	for _, c := range all {
		_, err = e.Digest(background, structure.SpanRef{Run: c.run, Seq: 3})
		require.NoError(t, err)
		commit.Records = append(commit.Records, &structure.Span{Ref: structure.SpanRef{Run: c.run, Seq: 15}, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: c.block.ID}}})
	}
	_, err = e.Apply(background, &commit, backend.Options{})
	require.NoError(t, err)
	again := handle(t, pool, "s")
	for _, c := range all {
		for place := uint64(1); place <= 15; place++ {
			_, err = again.Digest(background, structure.SpanRef{Run: c.run, Seq: place})
			require.NoError(t, err)
		}
	}
	requireSound(t, again)
}

// Keys of one group ask the server for it once. Those that nobody asked for take no room in the cache of the process.
func TestGroupIsReadOnce(t *testing.T) {
	var ks [][]byte
	for place := uint64(1); place <= 20; place++ {
		ks = append(ks, keys.Span(structure.SpanRef{Run: structure.RunID{1}, Seq: place}))
	}
	other := keys.Of(keys.TableTip, make([]byte, 16))
	var b pgx.Batch
	n := need{Need: read.Need{Keys: append(ks, other, other)}}
	n.queue(&b, &log{}, 0, unlimited, &fetchResult{})
	require.ElementsMatch(t, [][]byte{groupKey(ks[0]), groupKey(ks[19]), other}, b.QueuedQueries[0].Arguments[3])
	b = pgx.Batch{}
	(&log{}).queueLockAt(&b, head{first: 1}, n.Keys)
	require.Len(t, b.QueuedQueries[0].Arguments[5], 3)

	c := newCache(state{}, DefaultCache)
	tab := newStateReader(background, c, [16]byte{}, state{}, nil)
	f := fetchResult{keys: make(map[string][]byte)}
	for place := uint64(1); place <= 15; place++ {
		e := spanEntry(1, place, journal.Position{Offset: 1})
		f.keys[string(e.Key)] = e.Value
	}
	tab.take(need{Need: read.Need{Keys: ks[:1]}}, f)
	require.Equal(t, 1, c.items.Len())
	for _, k := range ks[:15] {
		v, known := tab.look(k)
		require.True(t, known)
		require.NotNil(t, v)
	}
}

// Each damaged group is found by a verification, which goes on; readers get an error.
func TestDamagedGroups(t *testing.T) {
	folding(t, 0)
	pool := newPool(t, pgtest.DSN(t), nil)
	e := handle(t, pool, "s")
	var all []*counter
	for range 4 {
		c := beginCounter(t, e)
		for range 20 {
			_, err := c.add(background, e, backend.Normal)
			require.NoError(t, err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *counter) int { return bytes.Compare(a.run[:], b.run[:]) })
	key := func(i int, place uint64) []byte {
		return groupKey(keys.Span(structure.SpanRef{Run: all[i].run, Seq: place}))
	}
	damage := func(statement string, key []byte) {
		is, err := pool.Exec(background, statement, exec, key)
		require.NoError(t, err)
		require.NotZero(t, is.RowsAffected())
	}
	requireSound(t, e)
	damage(`UPDATE lineage_entry SET value = '\x01' WHERE key = $1`, key(0, 1))
	damage(`DELETE FROM lineage_entry WHERE key = $1`, key(1, 16))
	damage(`UPDATE lineage_entry SET value = substr(value, 1, 50) WHERE key = $1`, key(2, 16))
	damage(`UPDATE lineage_entry SET value = set_byte(value, octet_length(value) - 1, get_byte(value, octet_length(value) - 1) # 1) WHERE key = $1`, key(3, 16))
	again := handle(t, pool, "s")
	want := []string{fmt.Sprintf("s:%x a group of spans is damaged", key(0, 1)[1:])}
	for place := uint64(16); place <= 20; place++ {
		want = append(want, fmt.Sprintf("s:%x entry is missing", keys.Span(structure.SpanRef{Run: all[1].run, Seq: place})[1:]))
	}
	want = append(want, fmt.Sprintf("s:%x a group of spans is damaged", key(2, 16)[1:]),
		fmt.Sprintf("s:%x entry differs from the log", keys.Span(structure.SpanRef{Run: all[3].run, Seq: 20})[1:]))
	var got []string
	for f, err := range again.Verify(background, backend.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		require.Equal(t, "index", f.Subject)
		require.Equal(t, "lineage_entry", f.File)
		got = append(got, f.ID+" "+f.Problem)
	}
	require.Equal(t, want, got)
	_, err := again.Digest(background, structure.SpanRef{Run: all[0].run, Seq: 1})
	require.ErrorIs(t, err, backend.ErrCorrupt)
}
