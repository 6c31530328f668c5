package keys_test

import (
	"bytes"
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

func id[T ~[16]byte](t *rapid.T, label string) T {
	return T(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label))
}

func ref(t *rapid.T) structure.SpanRef {
	r := structure.SpanRef{Seq: rapid.Uint64().Draw(t, "seq")}
	if r.Seq != 0 {
		r.Run = id[structure.RunID](t, "run")
	}
	return r
}

// Values are decoded as they were encoded, and truncated ones are refused.
func TestValuesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := journal.Position{Segment: rapid.Uint32().Draw(t, "segment"), Offset: rapid.Int64Range(0, 1<<50).Draw(t, "offset")}
		place := keys.Location{Frame: at, Record: at.Offset + rapid.Int64Range(0, 1<<40).Draw(t, "record"), Size: rapid.Int64Range(0, 1<<40).Draw(t, "size")}
		b := place.Append(nil)
		got, err := keys.ReadLocation(b)
		require.NoError(t, err)
		require.Equal(t, place, got)
		_, err = keys.ReadLocation(b[:len(b)-1])
		require.ErrorIs(t, err, keys.ErrValue)

		tip := judge.Tip{Span: ref(t), Commit: rapid.Uint64().Draw(t, "commit"), At: rapid.Int64().Draw(t, "at")}
		b = keys.AppendTip(nil, tip)
		gotTip, err := keys.ReadTip(b)
		require.NoError(t, err)
		require.Equal(t, tip, gotTip)
		_, err = keys.ReadTip(b[:len(b)-1])
		require.ErrorIs(t, err, keys.ErrValue)

		run := structure.RunInfo{Depth: rapid.Uint64().Draw(t, "depth")}
		run.ID, run.Parent = id[structure.RunID](t, "id"), ref(t)
		copy(run.Digest[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
		if rapid.Bool().Draw(t, "home") {
			run.Home = structure.Home{Thread: id[structure.ThreadID](t, "thread"), Incarnation: rapid.Uint64().Draw(t, "incarnation")}
			run.Home.Thread[0] |= 1
		}
		b = keys.AppendRun(nil, run)
		gotRun, err := keys.ReadRun(run.ID, b)
		require.NoError(t, err)
		require.Equal(t, run, gotRun)
		_, err = keys.ReadRun(run.ID, b[:len(b)-1])
		require.ErrorIs(t, err, keys.ErrValue)
	})
}

// The entries of a source id sort by their numbers, the greatest first, and can be decoded.
func TestLookupsSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Uint64Range(1, 300), rapid.Uint64Range(1, 1<<64-1))
		l := judge.Lookup{Home: structure.Home{Thread: id[structure.ThreadID](t, "thread")}, SourceID: rapid.String().Draw(t, "source"), Number: number.Draw(t, "a")}
		span := ref(t)
		span.Seq |= 1
		hash := keys.HashOfSource(l.Home, l.SourceID)
		ka, value := keys.AppendLookup(nil, nil, l, span)
		require.True(t, bytes.HasPrefix(ka, hash.Prefix()))
		require.True(t, bytes.HasPrefix(ka, keys.Lookups(l.SourceID)))
		gotNumber, gotSpan, err := keys.ReadLookup(ka)
		require.NoError(t, err)
		require.Equal(t, l.Number, gotNumber)
		require.Equal(t, span, gotSpan)
		has, sure := hash.Has(value)
		require.True(t, has && sure)
		has, sure = hash.Has(keys.Sealed(ka, value))
		require.True(t, has && !sure)
		other := keys.HashOfSource(l.Home, l.SourceID+"'")
		has, sure = other.Has(value)
		require.True(t, !has && sure)
		_, _, err = keys.ReadLookup(ka[:30])
		require.ErrorIs(t, err, keys.ErrValue)

		a := l.Number
		l.Number = number.Draw(t, "b")
		if kb, _ := keys.AppendLookup(nil, nil, l, span); a != l.Number {
			require.Equal(t, cmp.Compare(l.Number, a), bytes.Compare(ka, kb))
		}
	})
}

// The keys of a listing sort by time and thread, and both can be decoded.
func TestOrderSorts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place := func(label string) backend.PageToken {
			return backend.PageToken{Updated: rapid.Int64Range(-1<<47, 1<<47-1).Draw(t, label), Thread: id[structure.ThreadID](t, label)}
		}
		a, b := place("a"), place("b")
		ka, kb := keys.Order(keys.FilterAll, a), keys.Order(keys.FilterAll, b)
		require.Len(t, ka, keys.OrderKeySize)
		require.Equal(t, a, keys.OrderPosition(ka))
		require.Equal(t, cmp.Or(cmp.Compare(a.Updated, b.Updated), a.Thread.Compare(b.Thread)), bytes.Compare(ka, kb))
	})
}

// The end of a prefix sorts directly after all keys with the prefix.
func TestPrefixEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xfe, 0xff}), 0, 4)
		prefix, k := some.Draw(t, "prefix"), some.Draw(t, "key")
		end := keys.PrefixEnd(slices.Clone(prefix))
		in := bytes.Compare(k, prefix) >= 0 && (end == nil || bytes.Compare(k, end) < 0)
		require.Equal(t, bytes.HasPrefix(k, prefix), in)
	})
}
