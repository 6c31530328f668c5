package keys_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/internal/sealed"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

var tables = map[structure.Kind]byte{
	structure.KindBranch: keys.TableBranch, structure.KindSpanSet: keys.TableSpanSet, structure.KindCheckpoint: keys.TableCheckpoint,
	structure.KindReflog: keys.TableReflog, structure.KindRemnant: keys.TableRemnant, structure.KindSummary: keys.TableSummary,
	structure.KindThread: keys.TableThread, structure.KindValue: keys.TableValue, structure.KindContext: keys.TableContext,
}

// The fields of records cover their values, and have their ids.
func TestFields(t *testing.T) {
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
		ids := requireCovered(t, table, value)
		switch r := r.(type) {
		case *structure.Branch:
			require.Equal(t, nonzero(r.Thread, r.Context), ids)
		case *structure.Context:
			require.Equal(t, nonzero(r.ID, r.Thread, r.Parent, r.Base.Run, r.Tip.Run), ids)
		case *structure.Remnant:
			require.Equal(t, nonzero(r.ID, r.Parent), ids)
		}
	})
}

func TestFieldsOfOtherValues(t *testing.T) {
	span, thread := structure.SpanRef{Run: structure.RunID{1}, Seq: 300}, structure.ThreadID{2}
	run := keys.AppendRun(nil, structure.RunInfo{Run: structure.Run{Parent: span, Home: structure.Home{Thread: thread}}})
	require.Equal(t, nonzero(span.Run, thread), requireCovered(t, keys.TableRun, run))
	require.Equal(t, nonzero(span.Run), requireCovered(t, keys.TableTip, keys.AppendTip(nil, judge.Tip{Span: span})))
	require.Equal(t, nonzero(span.Run), requireCovered(t, keys.TableUsageOfContent, append(keys.AppendRef(nil, span), 7)))
	requireCovered(t, keys.TableBlock, keys.Location{Frame: journal.Position{Segment: 3, Offset: 400}, Record: 500, Size: 600}.Append(nil))
	requireCovered(t, keys.TableLastMessage, binary.AppendVarint(nil, -5))
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

// requireCovered returns the ids of the fields of a value, which cover it.
func requireCovered(t require.TestingT, table byte, value []byte) (ids [][16]byte) {
	v := keys.ReadVarints(value)
	id := func() {
		if b := v.Take(16); !v.Bad {
			ids = append(ids, nonzero([16]byte(b))...)
		}
	}
	for _, f := range (keys.Shape{}).Fields(nil, []byte{table}, value) {
		switch f.Form {
		case sealed.Number, sealed.Time:
			v.Next()
		case sealed.ID:
			id()
		case sealed.Ref:
			if v.Next() != 0 {
				id()
			}
		case sealed.Bytes:
			v.Take(uint64(f.Size))
		case sealed.Text:
			v.Take(v.Next())
		case sealed.Optional:
			if n := v.Next(); n > 0 {
				v.Take(n - 1)
			}
		}
	}
	require.NoError(t, v.Err())
	require.Empty(t, v.Rest)
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
			if p.Text {
				name += " of text"
			}
			if p.Tail {
				name += " by its end"
			}
			all[string(rune(table))] += name + ";"
		}
	}
	require.Equal(t, "crt", string(keys.Shape{}.Owners()))
	require.Equal(t, map[string]string{
		"a": "5;1;run;8;", "A": "4;6;thread;", "b": "thread;", "B": "16;thread;", "c": "context;", "d": "context;context;", "e": "32;", "f": "run;8;run;",
		"g": "16;", "G": "16;8;8;", "h": "16;", "i": "8;", "k": "thread;", "K": "16;thread;", "l": "context;8;8;", "m": "context;8;8;", "n": "8;",
		"o": "16;", "O": "thread;run;", "p": "context;", "q": "run;", "r": "run;", "R": "context;", "s": "run;8;", "S": "16 of text;thread;",
		"t": "thread;", "T": "thread by its end;", "u": "16;8;4;", "v": "thread;8;", "w": "thread;context;", "x": "thread;context;", "y": "16;",
		"Y": "16 of text;thread;",
	}, all)
}
