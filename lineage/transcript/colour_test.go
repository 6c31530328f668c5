package transcript

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUncoloured(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "",
		"plain [1m":           "plain [1m",
		"\x1b[1;31mred\x1b[m": "red",
		"\x1b[38;2;1;2;3mx\x1b[48:5:7my\x1b[0m\n":    "xy\n",
		"\x1b[01;31m\x1b[Kmatch\x1b[m\x1b[K of grep": "match of grep",
		"cut \x1b[38;":          "cut ",
		"\x1b[2Aup \x1b[?25l":   "\x1b[2Aup \x1b[?25l",
		"\x1b]8;;http://x\x07y": "\x1b]8;;http://x\x07y",
		"\x1b\x1b[1m[31mx":      "\x1b[31mx",
	} {
		require.Equal(t, want, Uncoloured(text), "%q", text)
	}
}

// Results and texts are shown without colours; the input of a call is exact.
func TestColoursAreNotShown(t *testing.T) {
	all := collect(t, Options{},
		object("assistant", `{"type":"function_call","call_id":"a","name":"shell","arguments":"{\"command\":\"printf '\\u001b[1mx'\"}"}`),
		object("user", `{"type":"function_call_output","call_id":"a","output":"\u001b[32mok\u001b[0m \u001b[2A"}`),
		plain("user", "<local-command-stdout>\x1b[1mbold\x1b[22m</local-command-stdout>"),
		plain("user", "Why \x1b[31mred\x1b[0m?"),
		plain("user", "\x1b[0m"),
	)
	require.Equal(t, "→ shell printf '\x1b[1mx'\n  ← ok \x1b[2A @2\nreminder: (local-command-stdout) bold\nprompt: Why red?\n", shown(all))
}
