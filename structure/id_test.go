package structure_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

func TestGoldenDerivedIDs(t *testing.T) {
	var b strings.Builder
	for _, parts := range [][]string{
		{}, {""}, {"", ""}, {"chat-1"}, {"ab", "c"}, {"a", "bc"}, {"abc"}, {"a", "b", "c"},
		{"\x01a"}, {"Naïve 雪"}, {strings.Repeat("long ", 100), "x"},
	} {
		name := fmt.Sprintf("%q", parts)
		if len(name) > 80 {
			name = name[:80] + "…"
		}
		fmt.Fprintf(&b, "%v %s\n", structure.DeriveID[structure.RunID](parts...), name)
	}
	requireGolden(t, "derived-ids", b.String())
}

func TestDerivedIDsDifferWithTheirParts(t *testing.T) {
	part := rapid.StringOfN(rapid.RuneFrom([]rune{0, 1, 2, 'a'}), 0, 3, -1)
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(part, 0, 4).Draw(t, "a")
		b := rapid.SliceOfN(part, 0, 4).Draw(t, "b")
		same := structure.DeriveID[structure.RunID](a...) == structure.DeriveID[structure.RunID](b...)
		require.Equal(t, slices.Equal(a, b), same)
	})
}

func TestDerivedIDsAreUUIDsOfTheirOwnVersion(t *testing.T) {
	for i := range 64 {
		s := structure.DeriveID[structure.ThreadID](fmt.Sprint(i)).String()
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, s)
	}
}

func TestNewIDsSortByAge(t *testing.T) {
	last := structure.NewID[structure.RunID]()
	for range 10_000 {
		next := structure.NewID[structure.RunID]()
		require.Positive(t, next.Compare(last), "%v after %v", next, last)
		last = next
	}
}

func TestMade(t *testing.T) {
	first, second := structure.NewID[structure.RunID](), structure.NewIDAt[structure.ContextID](time.UnixMilli(5))
	a, ok := structure.Made(first)
	require.True(t, ok)
	b, ok := structure.Made(second)
	require.True(t, ok)
	require.Greater(t, b, a)
	require.GreaterOrEqual(t, structure.LastMade(), b)
	for _, other := range []structure.RunID{{}, structure.DeriveID[structure.RunID]("a"), structure.RunID(uuid.Must(uuid.NewV7())), structure.RunID(uuid.New())} {
		_, ok := structure.Made(other)
		require.False(t, ok, other)
	}
	later := first
	later[10] += 100
	_, ok = structure.Made(later)
	require.False(t, ok, "it has not been made yet")
}

func TestIDsAsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type both struct {
			ID  structure.RunID
			Ref structure.SpanRef
			Map map[structure.ThreadID]structure.SpanRef
		}
		want := both{
			ID:  structuretest.OptionalIDs[structure.RunID]().Draw(t, "id"),
			Ref: structuretest.OptionalSpanRefs().Draw(t, "ref"),
		}
		want.Map = map[structure.ThreadID]structure.SpanRef{structure.ThreadID(want.ID): want.Ref}
		text, err := json.Marshal(want)
		require.NoError(t, err)
		var got both
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, want, got)

		parsed, err := structure.ParseSpanRef(want.Ref.String())
		require.NoError(t, err)
		require.Equal(t, want.Ref, parsed)
	})
}

func TestMalformedIDs(t *testing.T) {
	good := id[structure.RunID](0xab).String()
	for _, s := range []string{
		"", "-", good[:35], good + "0", strings.ReplaceAll(good, "-", ""), "{" + good + "}", "urn:uuid:" + good,
		strings.Replace(good, "a", "g", 1), strings.Replace(good, "-", "a", 1), strings.Repeat("x", 1<<20),
	} {
		unchanged := id[structure.RunID](1)
		err := unchanged.UnmarshalText([]byte(s))
		require.ErrorIs(t, err, structure.ErrBadID)
		require.Less(t, len(err.Error()), 200)
		require.Equal(t, id[structure.RunID](1), unchanged)
	}
	for _, s := range []string{
		"", good, good + "/", good + "/0", good + "/00", good + "/01", good + "/+1", good + "/-1", good + "/1 ",
		good + "/1/1", good + "/18446744073709551616", "/1", "--", " -", good[1:] + "/1", strings.Repeat("x", 1<<20),
	} {
		unchanged := at(1, 2)
		err := unchanged.UnmarshalText([]byte(s))
		require.ErrorIs(t, err, structure.ErrBadID)
		require.Less(t, len(err.Error()), 200)
		require.Equal(t, at(1, 2), unchanged)
	}
}

func TestNames(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"-":              structure.SpanRef{},
		"block":          structure.KindBlock,
		"deletion":       structure.KindDeletion,
		"record kind 0":  structure.Kind(0),
		"cut":            structure.KindCut,
		"value":          structure.KindValue,
		"remnant":        structure.KindRemnant,
		"record kind 17": structure.Kind(17),
		"thread":         structure.ThreadScope,
		"scope 6":        structure.Scope(6),
		"message":        structure.MessageUsage,
		"document":       structure.DocumentUsage,
		"asset":          structure.AssetUsage,
		"part":           structure.PartUsage,
		"reasoning":      structure.ReasoningPiece,
		"piece 9":        structure.PieceKind(9),
		"usage kind 5":   structure.UsageKind(5),
		"01010101-0101-0101-0101-010101010101/3.2": structure.UsageID{Span: at(1, 3), Index: 2},
	} {
		require.Equal(t, want, got.String())
	}
}
