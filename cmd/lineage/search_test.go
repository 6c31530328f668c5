package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was found stands out where there are styles, and is plain text elsewhere; the
// marks are shown nowhere.
func TestHitsStandOut(t *testing.T) {
	dir := newStore(t)
	search := func(colour bool) string {
		var out bytes.Buffer
		a := newApp(strings.NewReader(""), &out, &out, func(string) string { return "" })
		a.out.Colour = colour
		require.Equal(t, 0, a.run(t.Context(), []string{"search", "hello", "--store", dir}), out.String())
		return out.String()
	}
	require.Contains(t, search(true), "\n    \x1b[33;1mhello\x1b[0m\n")
	require.Contains(t, search(false), "\n    hello\n")
}
