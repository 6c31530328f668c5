package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/lineage"
)

// runAt runs a command line at a terminal where something is typed once it asks, and
// returns what the terminal shows.
func runAt(t *testing.T, typed func() string, args ...string) (code int, shows string) {
	t.Helper()
	p := openPTY(t)
	done := make(chan int)
	go func() {
		done <- execute(t.Context(), app.New(p.File, p.File, p.File, func(string) string { return "" }), args)
	}()
	for {
		select {
		case code := <-done:
			return code, p.Close()
		case <-p.Changed:
			if typed != nil && strings.HasSuffix(p.Written(), "[y/N] ") {
				require.NoError(t, p.Type(typed()))
				typed = nil
			}
		}
	}
}

func says(text string) func() string { return func() string { return text } }

// What cannot be undone is said and asked for at a terminal.
func TestDestructionIsAskedFor(t *testing.T) {
	dir := newStore(t)
	run := func(line string) {
		got := runLine(t.Context(), append(strings.Fields(line), "--store", dir)...)
		require.Equal(t, 0, got.code, "%s: %s", line, got.err)
	}
	run("thread create --id gone")
	run("append something --thread gone")
	run("thread delete gone --yes") // gc asks if there is something to remove
	run("thread create --id doomed --title Doomed")
	run("append one")
	run("append two")
	run("branch other")
	run("append other three")
	run("checkpoint here")
	for line, asks := range map[string]string{
		"thread delete doomed": `delete thread "Doomed" (`,
		"delete here":          `delete checkpoint "here" of thread "Doomed" (`,
		"delete other":         `delete branch "other" of thread "Doomed" (`,
		"erase :1":             `erase the bytes of content `,
		"gc":                   `remove `,
	} {
		args := append(strings.Fields(line), "--store", dir)
		for _, no := range []string{"\n", "n\n", "no\n", "x y\n"} {
			code, shows := runAt(t, says(no), args...)
			require.Equal(t, app.ExitFailure, code, "%s: %s", line, shows)
			require.Contains(t, shows, "This will "+asks, line)
			require.Contains(t, shows, "nothing was changed")
		}
	}
	_, shows := runAt(t, says("n\n"), "thread", "delete", "doomed", "--store", dir)
	require.Contains(t, shows, "with 3 messages and 2 branches. It cannot be undone.")

	// If it changes before the answer, it stays.
	code, shows := runAt(t, func() string {
		run("append four --thread doomed")
		return "y\n"
	}, "thread", "delete", "doomed", "--store", dir)
	require.Equal(t, app.ExitConflict, code, shows)
	require.Contains(t, shows, "with 4 messages")
	run("log --thread doomed")

	// Under --json nobody is asked.
	code, shows = runAt(t, nil, "thread", "delete", "doomed", "--json", "--store", dir)
	require.Equal(t, app.ExitUsage, code, shows)

	for _, line := range []string{"delete here", "delete other", "erase :1", "thread delete doomed", "gc --keep-reflog 0"} {
		code, shows := runAt(t, says("Yes\n"), append(strings.Fields(line), "--store", dir)...)
		require.Equal(t, 0, code, "%s: %s", line, shows)
	}
	require.Contains(t, runLine(t.Context(), "thread", "list", "--store", dir).out, "hello")
	store, err := lineage.Open(t.Context(), dir, lineage.Options{ReadOnly: true})
	require.NoError(t, err)
	defer store.Close()
	_, err = store.FindThread(t.Context(), "doomed")
	require.ErrorIs(t, err, lineage.ErrNotFound)
}
