package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// Valid agrees with json.Valid on all sequences of JSON fragments.
func TestValid(t *testing.T) {
	for _, n := range []int{rawjson.MaxDepth, rawjson.MaxDepth + 1, 9_000, 10_001} {
		for _, b := range []string{
			strings.Repeat("[", n) + strings.Repeat("]", n), strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n),
			strings.Repeat("[", n) + strings.Repeat("]", n-1), strings.Repeat("[", n) + strings.Repeat("]", n) + "x",
		} {
			require.Equal(t, json.Valid([]byte(b)), rawjson.Valid([]byte(b)), "%d: %.20s", n, b)
		}
	}
	pieces := []string{
		"{", "}", "[", "]", ",", ":", `"`, `"a"`, `"a":`, `"\u00e9 long enough for eight"`, `\`, `\"`, `\u`, "00e9", "\x00", "\x1f", "\x7f", "\xff", "é",
		"0", "-", "1", ".5", "e+9", "E", "01", "true", "false", "null", "nul", " ", "\n\t\r", "\v", "Infinity",
	}
	rapid.Check(t, func(t *rapid.T) {
		var b string
		if rapid.Bool().Draw(t, "a value with a change") {
			b = `{"id":"m1","parts":[{"type":"text","text":"a \"quoted\" word, and more"},{"n":-1.5e9,"t":true,"x":null,"e":[],"o":{}}]}`
			at := rapid.IntRange(0, len(b)).Draw(t, "at")
			b = b[:at] + rapid.SampledFrom(pieces).Draw(t, "piece") + b[min(len(b), at+rapid.IntRange(0, 3).Draw(t, "cut")):]
		} else {
			b = strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
		}
		require.Equal(t, json.Valid([]byte(b)), rawjson.Valid([]byte(b)), "%q", b)
	})
}
