package lock

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	line := func(name, state string, threads int) string {
		return fmt.Sprintf("42 (%s) %s 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 %d 0 98765 1000 200", name, state, threads)
	}
	for name, tc := range map[string]struct {
		stat string
		want process
	}{
		"sleeping":              {line("bash", "S", 1), process{running: true, started: "98765"}},
		"name with parentheses": {line("a) Z (b", "R", 4), process{running: true, started: "98765"}},
		"zombie":                {line("bash", "Z", 1), process{}},
		"dead":                  {line("bash", "X", 0), process{}},
		"first thread ended":    {line("bash", "Z", 3), process{running: true, started: "98765"}},
		"first of many ended":   {line("bash", "Z", 12), process{running: true, started: "98765"}},
		"cut short":             {"42 (bash) S 1", process{running: true}},
		"empty":                 {"", process{running: true}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, parseStat([]byte(tc.stat)))
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) S 1 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 200"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if p := parseStat(stat); p.started != "" {
			require.True(t, p.running)
		}
	})
}
