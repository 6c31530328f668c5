package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A log that shows nothing says whether there are no messages, or none of the roles that were asked for.
func TestLogThatShowsNothing(t *testing.T) {
	dir := newStore(t)
	shows := func(args ...string) string {
		code, shown := runAt(t, nil, append(args, "--store", dir)...)
		require.Equal(t, 0, code)
		return shown
	}
	require.Contains(t, shows("log", "--role", "tool"), "no messages of these roles here; ")
	require.NotContains(t, shows("log", "--role", "user"), "no messages")
	require.Equal(t, 0, runLine(t.Context(), "thread", "create", "--store", dir).code)
	require.Contains(t, shows("log"), "no messages here; ")
}
