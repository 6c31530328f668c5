package screen

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/plain"
)

func TestCleanLeavesATerminalAlone(t *testing.T) {
	require.Equal(t, "a␛[31mb␍\nc\td␡", plain.Text("a\x1b[31mb\r\nc\td\x7f"))
	require.Equal(t, "�[1m �", plain.Text("\u009b[1m \xff"))
	require.Equal(t, "�txt.exe���", plain.Text("\u202etxt.exe\u200f\u061c\u2066"))
	require.Equal(t, "��(", plain.Text("\xe2\xe2("))
}

// unsafeText draws text in which about every second character is one that terminals obey,
// or no UTF-8.
func unsafeText() *rapid.Generator[string] {
	parts := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"\x1b[31m", "\x1b]0;t\a", "\r", "\b", "\x7f", "\u0085", "\u009b2J", "\x9b2J", "\u202e", "\u2066", "\u200e", "\u061c", "\xff", "\xe2\x80",
		"\xff\xff", "日本", "\n", "\t", "é", mark[:5],
	}))
	return rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOf(parts).Draw(t, "parts"), "") })
}

// However text is cut into writes, a Sanitizer passes on the same: no control character and
// nothing that is not UTF-8, but the program's own sequences.
func TestFilterPassesOnNoControlCharacters(t *testing.T) {
	s := &Screen{Colour: true}
	rapid.Check(t, func(t *rapid.T) {
		text := unsafeText().Draw(t, "text")
		require.NotContains(t, text, mark)
		clean := plain.Text(text)
		require.True(t, utf8.ValidString(clean))
		for _, r := range clean {
			require.False(t, plain.Hidden(r), "%q", r)
		}
		painted := text + s.Paint(Red, "red") + text + clearLine + text
		var out bytes.Buffer
		f := NewSanitizer(&out)
		for rest := painted; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			wrote, err := f.Write([]byte(rest[:n]))
			require.NoError(t, err)
			require.Equal(t, n, wrote)
			rest = rest[n:]
		}
		require.NoError(t, f.Flush())
		require.Equal(t, clean+"\x1b[31mred\x1b[0m"+clean+"\r\x1b[K"+clean, out.String())
	})
}

func TestJSONKeepsItsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(unsafeText().Draw(t, "text"), "?")
		var out bytes.Buffer
		require.NoError(t, json.NewEncoder(NewJSONSanitizer(&out)).Encode(text))
		require.Equal(t, plain.Text(out.String()), out.String())
		var got string
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		require.Equal(t, text, got)
	})
}

// Of all code points, those that a terminal obeys or does not show never reach it: controls, formats,
// and separators of lines and paragraphs. A program gets them in JSON, escaped.
func TestEveryCodePoint(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		text := string(r)
		hidden := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && !strings.ContainsRune("\n\t\u200c\u200d", r)
		clean := plain.Text(text)
		require.Equal(t, hidden, clean != text, "%U", r)
		require.Equal(t, 1, utf8.RuneCountInString(clean), "%U", r)
		if !hidden {
			continue
		}
		require.Equal(t, clean, plain.Text(clean), "%U", r)
		var out bytes.Buffer
		require.NoError(t, json.NewEncoder(NewJSONSanitizer(&out)).Encode(text))
		for _, b := range out.Bytes() {
			require.True(t, b == '\n' || b >= ' ' && b < 0x7f, "%U: %q", r, out.Bytes())
		}
		var got string
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		require.Equal(t, text, got, "%U", r)
	}
}
