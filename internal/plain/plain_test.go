package plain

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"plain\n\ttext":             "plain\n\ttext",
		"\x1b[31mred\x07":           "\u241b[31mred\u2407",
		"a\u202eb\u2066c\u2028d":    "a\ufffdb\ufffdc\ufffdd",
		"\x7f\u0085\ufeff":          "\u2421\ufffd\ufffd",
		"می\u200cخواهم 👩\u200d🚀":    "می\u200cخواهم 👩\u200d🚀",
		"cut \xf0\x9f":              "cut \ufffd\ufffd",
		"already \ufffd \U000e0041": "already \ufffd \ufffd",
	} {
		require.Equal(t, want, Text(text))
	}
}

// The values of strings stay as they are.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{"", "plain", "\x1b[31m\x7f\u009b", "\u202e\u2028\ufeff\U000e0041\u200d", "\n\t\r"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := json.Marshal(text)
		require.NoError(t, err)
		var want, got string
		require.NoError(t, json.Unmarshal(doc, &want))
		clean := JSON(doc)
		require.NoError(t, json.Unmarshal(clean, &got))
		require.Equal(t, want, got)
		for _, r := range string(clean) {
			require.False(t, Hidden(r), "%q", clean)
		}
		for _, r := range Text(text) {
			require.False(t, Hidden(r), "%q", text)
		}
	})
}
