package sealed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func subjectOf(i int) []byte {
	sum := sha256.Sum256(fmt.Append(nil, "subject ", i))
	return append([]byte("u"), sum[:subjectSize]...)
}

func runOf(i int) []byte {
	sum := sha256.Sum256(fmt.Append(nil, "run ", i))
	return sum[:idSize]
}

func useValue(position uint64, run []byte, number uint64) []byte {
	return binary.AppendUvarint(append(binary.AppendUvarint(nil, position), run...), number)
}

// history is uses as commits make them.
type history struct {
	entries map[string][]byte
	commit  uint64
	place   uint32
}

func (h *history) use(subject int, position uint64, run []byte, number uint64) {
	h.entries[string(appendUseKey(nil, subjectOf(subject), h.commit, h.place))] = useValue(position, run, number)
	h.place++
}

// usedAgain is a message: its subjects, and usages before them that repeat nothing.
type usedAgain struct {
	subjects []int
	skip     int
}

func drawMessage(t *rapid.T) usedAgain {
	return usedAgain{rapid.SliceOfN(rapid.IntRange(0, 60), 1, 2).Draw(t, "subjects"), rapid.SampledFrom([]int{0, 0, 0, 0, 0, 0, 0, 1, 3}).Draw(t, "skip")}
}

// drawHistories draws conversations that begin with those of others, with changes, messages that repeat within one, and parts of
// copies that are deleted.
func drawHistories(t *rapid.T) *history {
	h := &history{entries: map[string][]byte{}, commit: rapid.Uint64Range(1, 3).Draw(t, "commit")}
	var known [][]usedAgain
	for n := range rapid.IntRange(1, 12).Draw(t, "conversations") {
		var messages []usedAgain
		if len(known) > 0 && rapid.IntRange(0, 5).Draw(t, "copy") > 0 {
			from := rapid.SampledFrom(known).Draw(t, "from")
			start := rapid.IntRange(0, len(from)).Draw(t, "start")
			messages = slices.Clone(from[start:rapid.IntRange(start, len(from)).Draw(t, "end")])
			for range rapid.IntRange(0, 2).Draw(t, "changes") {
				if len(messages) > 0 {
					messages[rapid.IntRange(0, len(messages)-1).Draw(t, "at")] = drawMessage(t)
				}
			}
		}
		for range rapid.IntRange(0, 40).Draw(t, "more") {
			messages = append(messages, drawMessage(t))
		}
		if rapid.IntRange(0, 3).Draw(t, "twice") == 0 {
			messages = append(messages, messages...)
		}
		known = append(known, messages)
		run, position := runOf(n), uint64(1)
		if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
			position = rapid.SampledFrom([]uint64{1 << 30, 1<<32 - 20, 1 << 33, math.MaxUint64 - 5}).Draw(t, "position")
			h.place = rapid.SampledFrom([]uint32{1 << 20, 1<<31 - 10, math.MaxUint32 - 200}).Draw(t, "place")
		}
		for _, m := range messages {
			if rapid.IntRange(0, 30).Draw(t, "next commit") == 0 {
				h.commit, h.place = h.commit+rapid.Uint64Range(1, 300).Draw(t, "by"), 0
			}
			h.place += uint32(m.skip)
			for i, s := range m.subjects {
				h.use(s, position, run, uint64(i))
			}
			if position++; position == 0 {
				position = 1
			}
		}
		h.commit, h.place = h.commit+rapid.Uint64Range(0, 2).Draw(t, "commits"), h.place+10
	}
	keys := sorted(h.entries)
	for range rapid.IntRange(0, 5).Draw(t, "deleted") {
		if len(keys) > 0 {
			delete(h.entries, rapid.SampledFrom(keys).Draw(t, "key"))
		}
	}
	return h
}

// drawOdd adds entries of the table that are no uses in form.
func drawOdd(t *rapid.T, all map[string][]byte) {
	for range rapid.IntRange(0, 6).Draw(t, "odd") {
		key := subjectOf(rapid.IntRange(0, 60).Draw(t, "subject"))
		switch rapid.IntRange(0, 3).Draw(t, "form") {
		case 0:
			key = key[:rapid.IntRange(1, len(key)).Draw(t, "length")]
		case 1:
			key = append(key, 0, 0, 0)
		case 2:
			key = append(appendUseKey(nil, key, rapid.Uint64Range(1, 4).Draw(t, "commit"), 3), rapid.SliceOfN(rapid.Byte(), 1, 3).Draw(t, "rest")...)
		default:
			key = appendUseKey(nil, key, rapid.Uint64Range(1, 4).Draw(t, "commit"), rapid.Uint32Range(0, 9).Draw(t, "place"))
		}
		run := runOf(rapid.IntRange(0, 20).Draw(t, "run"))
		all[string(key)] = rapid.SampledFrom([][]byte{
			{}, {0}, {1}, run, useValue(0, run, 1), append(useValue(2, run, 1), 0), useValue(3, bytes.Repeat([]byte{7}, idSize), 2),
			append(append([]byte{0x81, 0}, run...), 1), useValue(1<<62, run, math.MaxUint64), useValue(2, run, 1<<16),
		}).Draw(t, "value")
	}
}

func drawBound(t *rapid.T, keys []string) []byte {
	switch rapid.IntRange(0, 4).Draw(t, "bound") {
	case 0:
		return appendUseKey(nil, subjectOf(rapid.IntRange(0, 60).Draw(t, "subject")), rapid.Uint64Range(0, 4).Draw(t, "commit"), rapid.Uint32Range(0, 90).Draw(t, "place"))
	case 1:
		return []byte(rapid.SampledFrom([]string{"\x00", "t", "u", "v", "\xff", "\xff\xff"}).Draw(t, "letter"))
	case 2:
		return subjectOf(rapid.IntRange(0, 60).Draw(t, "subject"))
	}
	if len(keys) == 0 {
		return []byte{0}
	}
	key := []byte(rapid.SampledFrom(keys).Draw(t, "key"))
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		return key[:rapid.IntRange(1, len(key)).Draw(t, "length")]
	case 1:
		return append(key, 0)
	}
	return key
}

// Whatever series a table has, it answers as a map does.
func TestUsesModel(t *testing.T) {
	tables, inSeries := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		all := drawHistories(t).entries
		drawOdd(t, all)
		for i := range rapid.SampledFrom([]int{0, 5, 14, 14, 14, 14}).Draw(t, "runs") {
			all["r"+string(runOf(i))] = []byte{}
		}
		if rapid.Bool().Draw(t, "others") {
			all["t"], all["v"], all["x"] = []byte("before"), []byte("after"), []byte{}
		}
		w := writeUses(t, testShape{}, all, rapid.SampledFrom([]int{1, 10, 100, maxUses, maxUses}).Draw(t, "at a time"), rapid.SampledFrom([]int{0, 0, mixedCost}).Draw(t, "mixed"))
		if tables++; w.hasSeries() {
			inSeries++
		}
		requireTable(t, w, all)

		// A copy of the table without some entries is another table.
		kept := maps.Clone(all)
		for _, k := range sorted(all) {
			if k[0] != 'r' && rapid.IntRange(0, 9).Draw(t, "dropped") == 0 {
				delete(kept, k)
			}
		}
		requireTable(t, writeUses(t, testShape{}, kept, maxUses, 0), kept)
	})
	t.Logf("%d tables, %d with series", tables, inSeries)
	require.Greater(t, inSeries, 0)
}

func requireTable(t *rapid.T, w *written, all map[string][]byte) {
	keys := sorted(all)
	requireEntries(t, w, all, keys, nil, nil)
	whole := int64(0)
	for _, k := range keys {
		whole += int64(len(k) + len(all[k]))
		v, ok, err := w.Get([]byte(k))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, string(all[k]), string(v))
		ok, err = w.Has([]byte(k))
		require.NoError(t, err)
		require.True(t, ok)
	}
	_, counted := w.Size()
	require.Equal(t, whole, counted)
	for range 15 {
		from, to := drawBound(t, keys), drawBound(t, keys)
		v, ok, err := w.Get(from)
		require.NoError(t, err)
		want, has := all[string(from)]
		require.Equal(t, has, ok)
		require.Equal(t, string(want), string(v))
		ok, err = w.Has(to)
		require.NoError(t, err)
		_, has = all[string(to)]
		require.Equal(t, has, ok)
		requireEntries(t, w, all, keys, from, to)
		requireEntries(t, w, all, keys, from, nil)
		requireLast(t, w, all, keys, from, to)
		requireLast(t, w, all, keys, nil, to)
		requireLast(t, w, all, keys, from, nil)
	}
}
