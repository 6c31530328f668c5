package sqladapter

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// odd are parts of texts that look like escapes.
var odd = []string{"\x00", escapeMark, "0000", "fdd0", "FDD0", "d83d", "dead", "\\", "u0000", `"`, "a", "é", "😀", "\ufffd", "\n"}

func oddText(r *rapid.T) string {
	return strings.Join(rapid.SliceOf(rapid.OneOf(rapid.SampledFrom(odd), rapid.String())).Draw(r, "text"), "")
}

// TestEscape writes random texts and JSON, and reads them back. Equal forms come from equal texts, and contain
// nothing that a database refuses.
func TestEscape(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text, other := oddText(r), oddText(r)
		stored := escapeText(text)
		require.NotContains(r, stored, "\x00")
		require.Equal(r, utf8.ValidString(text), utf8.ValidString(stored))
		require.Equal(r, text, unescapeText(stored))
		require.Equal(r, text == other, stored == escapeText(other))

		units := rapid.SliceOf(rapid.SampledFrom([]string{`\u0000`, `\ufdd0`, `\uFDD0`, escapeMark, `\ud83d`, `\uD83D`, `\ude00`, `\\`, `\"`, "0000", "fdd0", "d83d", "u", "é"})).Draw(r, "units")
		document := `{"` + strings.Join(units, "") + `":["` + strings.Join(units, "") + `", 1.50]}`
		stored = escapeJSON(document)
		require.True(r, json.Valid([]byte(stored)), "%s: %s", document, stored)
		for _, refused := range []string{`\u0000`, `\ufdd0`} {
			require.NotContains(r, strings.ReplaceAll(strings.ToLower(stored), `\\`, ""), refused)
		}
		require.Equal(r, strings.NewReplacer(`\\`, `\\`, `\ufdd0`, escapeMark).Replace(lower(document)), lower(unescapeJSON(stored)))
		var value any
		require.NoError(r, json.Unmarshal([]byte(stored), &value))
		reformatted, err := json.Marshal(value) // as a database does that keeps values
		require.NoError(r, err)
		require.JSONEq(r, document, unescapeJSON(string(reformatted)))
	})
}

// lower returns JSON with code units in lower case.
func lower(document string) string {
	return strings.NewReplacer(`\\`, `\\`, `\uFDD0`, `\ufdd0`, `\uD83D`, `\ud83d`).Replace(document)
}

// What other programs wrote is read as it is, unless it is an escape.
func TestUnescapeOthers(t *testing.T) {
	for _, text := range []string{escapeMark, escapeMark + "0", escapeMark + "1234", escapeMark + "FDD0", "a" + escapeMark, escapeMark + escapeMark} {
		require.Equal(t, text, unescapeText(text))
		require.Equal(t, `"`+text+`"`, unescapeJSON(`"`+text+`"`))
	}
}
