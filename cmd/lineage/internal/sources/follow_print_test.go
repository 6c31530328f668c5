package sources

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A line with the path of a file does not name the file again.
func TestAfterName(t *testing.T) {
	for text, expected := range map[string]string{
		"a.jsonl: line 4 (byte 519): malformed: bad string": "line 4 (byte 519): malformed: bad string",
		"a.jsonl, message m: malformed":                     "message m: malformed",
		"a.jsonl":                                           "a.jsonl",
		"a.jsonl.zst: line 1: malformed":                    "a.jsonl.zst: line 1: malformed",
		"b.jsonl: line 4: malformed":                        "b.jsonl: line 4: malformed",
		"permission denied":                                 "permission denied",
	} {
		require.Equal(t, expected, afterName(text, "/home/ada/.codex/sessions/a.jsonl"))
	}
}
