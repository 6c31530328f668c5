package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/memtable"
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
func TestGroupsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := make(map[string][]byte) // the latest version of each
		model := make(map[string][]byte)
		next := [3]uint64{1, 1, 1}
		if rapid.Bool().Draw(t, "late") {
			next[2] = 1<<16 - 5
		}
		is := state{}
		fetch := func(_ context.Context, n need) (found, error) { return grouped(t, rows, n), nil }
		warm := newTable(background, newCache(state{}, 0), [16]byte{}, is, fetch)
		most := rapid.SampledFrom([]int{0, 400, 4000, 1 << 20}).Draw(t, "most")
		was, rowsWas := mostUnfolded, mostChanges
		mostUnfolded, mostChanges = most, rapid.SampledFrom([]int{1, 3, 512}).Draw(t, "changes")
		defer func() { mostUnfolded, mostChanges = was, rowsWas }()
		turns := rapid.Uint64Range(1, 10).Draw(t, "turns")
		for number := uint64(1); number <= turns; number++ {
			if rapid.IntRange(0, 3).Draw(t, "cold") == 0 {
				warm = newTable(background, newCache(state{}, 0), [16]byte{}, warm.is, fetch)
			}
			j := &judging{table: warm}
			warm.over = memtable.New()
			for range rapid.IntRange(1, 3).Draw(t, "commits") {
				run := rapid.IntRange(0, 2).Draw(t, "run")
				for range rapid.SampledFrom([]int{1, 2, 15, 16, 33, 50}).Draw(t, "spans") {
					e := spanEntry(byte(run), next[run], journal.Position{Segment: uint32(number) % 3, Offset: int64(number)})
					warm.over.Set(e.Key, e.Value)
					model[string(e.Key)] = e.Value
					next[run]++
				}
			}
			m, err := j.made(number, rapid.IntRange(0, 9).Draw(t, "fold") == 0)
			require.NoError(t, err)
			require.LessOrEqual(t, m.unfolded.rows(), mostChanges)
			for i, e := range m.entries {
				require.Equal(t, rows[string(e.Key)] != nil, e.replaces, "what it replaces is removed later")
				require.True(t, i == 0 || bytes.Compare(m.entries[i-1].Key, e.Key) < 0, "by key")
				rows[string(e.Key)] = e.Value
			}
			is := warm.is
			is.Number, is.folded, is.unfolded = number, m.folded, m.unfolded
			warm.settle(is, m.entries)

			cold := newTable(background, newCache(state{}, 0), [16]byte{}, is, fetch)
			for _, tab := range []*table{warm, cold} {
				readsAs(t, tab, model, next[:])
			}
		}
	})
}

// readsAs checks what a table reads of spans.
func readsAs(t *rapid.T, tab *table, model map[string][]byte, next []uint64) {
	run := byte(rapid.IntRange(0, len(next)-1).Draw(t, "run"))
	prefix := keys.Of(keys.TableSpan, (&structure.RunID{run})[:])
	want := []index.Entry{}
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if bytes.HasPrefix([]byte(k), prefix) {
			want = append(want, index.Entry{Key: []byte(k), Value: model[k]})
		}
	}
	from, to := prefix, keys.PrefixEnd(prefix)
	if len(want) > 0 && rapid.Bool().Draw(t, "part") {
		first := rapid.IntRange(0, len(want)-1).Draw(t, "first")
		last := rapid.IntRange(first, len(want)-1).Draw(t, "last")
		from, to, want = want[first].Key, keys.PrefixEnd(want[last].Key), want[first:last+1]
		if rapid.Bool().Draw(t, "after") {
			from, want = append(bytes.Clone(from), 0), want[1:]
		}
	}
	if rapid.Bool().Draw(t, "ahead") {
		require.NoError(t, tab.Prefetch(background, read.Need{Ranges: []read.Range{{From: from, To: to}}, Lasts: []read.Range{read.Under(prefix)}}))
	}
	got := []index.Entry{}
	for e, err := range tab.Scan(from, to) {
		require.NoError(t, err)
		got = append(got, e)
	}
	require.Equal(t, want, got)
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
func grouped(t require.TestingT, rows map[string][]byte, n need) (f found) {
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
			_, err := keys.ReadSpanPlace(e.Value)
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
	said := []string{"0"}
	var tips []structure.SpanRef
	var states []backend.Snapshot
	for i, n := range []int{1, 13, 1, 1, 16, 40, 1, 2, 100, 1} {
		e := []*Engine{a, b}[i%2]
		main, err := lineage.New(e).Thread(background, thread.ID())
		require.NoError(t, err)
		of, err := main.Active(background)
		require.NoError(t, err)
		var items []lineage.Item
		for range n {
			said = append(said, fmt.Sprint(len(said)))
			items = append(items, lineage.User(said[len(said)-1]))
		}
		_, err = of.Extend(background, items...)
		require.NoError(t, err)
		tip, err := of.Tip(background)
		require.NoError(t, err)
		s, err := e.Snapshot(background)
		require.NoError(t, err)
		tips, states = append(tips, tip), append(states, s)
	}
	witness := handle(t, newPool(t, dsn, nil), "s")
	for _, e := range []*Engine{a, b, witness} {
		requireSaid(t, e, thread, said...)
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
					require.Equal(t, said[n], string(step.Blocks[0].Body))
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
	requireSaid(t, again, thread, said...)
}
