package engine

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// FuzzMergeMetadata merges any two texts. Objects are merged like maps; other values are refused.
func FuzzMergeMetadata(f *testing.F) {
	for _, seed := range [][2]string{
		{``, `{}`}, {`null`, `{"a":1}`}, {`{"a":1}`, `{"a":2,"b":3}`}, {` { "a" : 1 , "c":[ ] } `, `{"\u0061":"<&>"}`},
		{`{"a":1,"a":2}`, `{"a":3}`}, {`{}`, `{"a":1,"a":2}`}, {`{}`, `[]`}, {`[]`, `{}`}, {`{"":0}`, `{"":{"":0}}`},
		{`{"\ud800":1}`, "{\"\xff\":2}"}, {`{}`, "{\"\x9e\x9e\":2}"}, {`{"a":{"b":1}}`, `{"a":{"c":1}}`}, {`{}`, `{}{}`}, {``, `{]`}, {`{]`, `{}`}, {` null`, `{}`},
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
