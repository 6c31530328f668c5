package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/chat"
)

// FuzzMergeMetadata merges any two texts. Objects are merged as maps are, and
// nothing else is.
func FuzzMergeMetadata(f *testing.F) {
	for _, seed := range [][2]string{
		{``, `{}`}, {`null`, `{"a":1}`}, {`{"a":1}`, `{"a":2,"b":3}`}, {` { "a" : 1 , "c":[ ] } `, `{"\u0061":"<&>"}`},
		{`{"a":1,"a":2}`, `{"a":3}`}, {`{}`, `{"a":1,"a":2}`}, {`{}`, `[]`}, {`[]`, `{}`}, {`{"":0}`, `{"":{"":0}}`},
		{`{"\ud800":1}`, "{\"\xff\":2}"}, {`{"a":{"b":1}}`, `{"a":{"c":1}}`}, {`{}`, `{}{}`}, {``, `{]`}, {`{]`, `{}`}, {` null`, `{}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	e := &Engine{chatID: "c"}
	f.Fuzz(func(t *testing.T, before, more []byte) {
		out, err := e.merged(before, more)
		var had, added, has map[string]any
		hadErr, addedErr := json.Unmarshal(before, &had), json.Unmarshal(more, &added)
		if addedErr != nil || added == nil || len(before) > 0 && hadErr != nil {
			require.ErrorIs(t, err, chat.ErrInvalid)
			return
		}
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(out, &has))
		if had == nil {
			had = map[string]any{}
		}
		for name, value := range added {
			had[name] = value
		}
		require.Equal(t, had, has)
	})
}

func TestNextName(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom([]string{"main", "main-v2", "-v", "v"}), rapid.StringOfN(rapid.Rune().Filter(func(r rune) bool { return r != 0 }), 1, 300, 600)).Draw(r, "current")
		names := []string{name}
		for range rapid.IntRange(1, 40).Draw(r, "branches") {
			taken := rapid.SliceOfN(rapid.SampledFrom([]string{"main-v2", "main-v3", name + "-v4"}), 0, 2).Draw(r, "taken")
			next := nextName(name, names, taken)
			require.NotContains(r, names, next)
			require.NotContains(r, taken, next)
			require.LessOrEqual(r, len(next), maxName)
			require.NoError(r, chat.Branch{Name: next}.Check())
			names = append(names, next)
			if rapid.Bool().Draw(r, "go on from it") {
				name = next
			}
		}
	})
	require.Equal(t, "main-v2", nextName("main", []string{"main"}, nil))
	require.Equal(t, "main-v4", nextName("main", []string{"main", "main-v2", "main-v2-v2"}, nil))
	require.Equal(t, "main-v5", nextName("main", []string{"main", "main-v3", "main-v4"}, nil), "4 is taken")
	require.Equal(t, "main-v6", nextName("main", []string{"main", "main-v3", "main-v4"}, []string{"main-v5"}))
	long := "main" + strings.Repeat("-v2", 80)
	require.Equal(t, "main"+strings.Repeat("-v2", 57)+"-v1", nextName(long, slices.Repeat([]string{"x"}, 3), nil))
}
