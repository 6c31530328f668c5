package keys_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

var tables = map[structure.Kind]byte{
	structure.KindBranch: keys.TableBranch, structure.KindSpanSet: keys.TableSpanSet, structure.KindCheckpoint: keys.TableCheckpoint,
	structure.KindReflog: keys.TableReflog, structure.KindRemnant: keys.TableRemnant, structure.KindSummary: keys.TableSummary,
	structure.KindThread: keys.TableThread, structure.KindValue: keys.TableValue, structure.KindContext: keys.TableContext,
}

// The ids of records are found in values, in order and at their places.
func TestReferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := structuretest.PlainRecords().Draw(t, "record")
		table, ok := tables[r.Kind()]
		if !ok {
			t.Skip("not a value")
		}
		var value []byte
		if table == keys.TableContext {
			value = binary.AppendUvarint(binary.AppendUvarint(value, 300), 1<<40)
		}
		value, err := structure.AppendRecord(value, r)
		if err != nil {
			t.Skip("has no binary form")
		}
		last := 0
		for _, at := range (keys.Shape{}).References(nil, []byte{table}, value) {
			require.GreaterOrEqual(t, at.Offset, last)
			last = at.Offset + 16
			require.LessOrEqual(t, last, len(value))
		}
		switch r := r.(type) {
		case *structure.Branch:
			require.Equal(t, nonzero(r.Thread, r.Context), found(table, value))
		case *structure.Context:
			require.Equal(t, nonzero(r.ID, r.Thread, r.Parent, r.Base.Run, r.Tip.Run), found(table, value))
		case *structure.Remnant:
			require.Equal(t, nonzero(r.ID, r.Parent), found(table, value))
		}
	})
}

func TestReferencesOfOtherValues(t *testing.T) {
	span, thread := structure.SpanRef{Run: structure.RunID{1}, Seq: 300}, structure.ThreadID{2}
	run := keys.AppendRun(nil, structure.RunInfo{Run: structure.Run{Parent: span, Home: structure.Home{Thread: thread}}})
	require.Equal(t, nonzero(span.Run, thread), found(keys.TableRun, run))
	require.Equal(t, nonzero(span.Run), found(keys.TableTip, keys.AppendTip(nil, judge.Tip{Span: span})))
	require.Equal(t, nonzero(span.Run), found(keys.TableUsageOfContent, append(keys.AppendRef(nil, span), 7)))
	for n := range run[:40] {
		for _, id := range found(keys.TableRun, run[:n]) {
			require.Equal(t, [16]byte(span.Run), id)
		}
	}
}

// nonzero returns the ids that are not zero.
func nonzero(ids ...[16]byte) (all [][16]byte) {
	for _, id := range ids {
		if id != [16]byte{} {
			all = append(all, id)
		}
	}
	return all
}

func found(table byte, value []byte) (ids [][16]byte) {
	for _, at := range (keys.Shape{}).References(nil, []byte{table}, value) {
		ids = append(ids, [16]byte(value[at.Offset:]))
	}
	return ids
}
