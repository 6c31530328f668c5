package keys_test

import (
	"encoding/binary"
	"fmt"
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

// The parts of keys decide the bytes of sealed tables: changing them needs a new version of the index.
func TestShapeIsFrozen(t *testing.T) {
	names := map[int]string{0: "context", 1: "run", 2: "thread"}
	all := map[string]string{}
	for table := range 256 {
		for _, p := range (keys.Shape{}).Parts(byte(table)) {
			name := names[p.Kind]
			if p.Size > 0 {
				name = fmt.Sprint(p.Size)
			}
			if p.Tail {
				name += " by its end"
			}
			all[string(rune(table))] += name + ";"
		}
	}
	require.Equal(t, "crt", string(keys.Shape{}.Owners()))
	require.Equal(t, map[string]string{
		"A": "12;thread;", "b": "thread;", "B": "16;thread;", "c": "context;", "d": "context;context;", "f": "run;8;run;", "k": "thread;",
		"K": "16;thread;", "l": "context;", "m": "context;", "O": "thread;run;", "p": "context;", "q": "run;", "r": "run;", "R": "context;",
		"s": "run;", "S": "24;thread;", "t": "thread;", "T": "thread by its end;", "v": "thread;", "w": "thread;context;", "x": "thread;context;",
		"Y": "24;thread;",
	}, all)
}
