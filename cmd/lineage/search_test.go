package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/threads"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

// What was found stands out where there are styles, and is plain text elsewhere; the
// marks are shown nowhere.
func TestHitsStandOut(t *testing.T) {
	dir := newStore(t)
	search := func(colour bool) string {
		var out bytes.Buffer
		a := app.New(strings.NewReader(""), &out, &out, func(string) string { return "" })
		a.Out.Colour = colour
		require.Equal(t, 0, execute(t.Context(), a, []string{"search", "hello", "--store", dir}), out.String())
		return out.String()
	}
	require.Contains(t, search(true), "\n    \x1b[33;1mhello\x1b[0m\n")
	require.Contains(t, search(false), "\n    hello\n")
}

// Matches of the messages that many threads share do not keep other messages from being found.
func TestHitsAreDistinctMessages(t *testing.T) {
	shared := structure.SpanRef{Run: structure.NewID[structure.RunID](), Seq: 3}
	var all []chat.SearchResult
	add := func(chatID, id string) {
		all = append(all, chat.SearchResult{Message: chat.Message{ID: id, ChatID: chatID, Name: "user", Data: []byte(`"text"`)}})
	}
	add("thread 0", shared.String())
	for i := 1; i < 100; i++ {
		add(fmt.Sprint("thread ", i), structure.NewID[structure.ThreadID]().String()+"/"+shared.String())
	}
	add("thread 0", "m1")
	add("thread 1", "m2")
	asked := 0
	find := func(limit int) ([]chat.SearchResult, error) {
		asked++
		return all[:min(limit, len(all))], nil
	}
	hits, err := threads.FindHits(2, find)
	require.NoError(t, err)
	require.Len(t, hits, 2)
	require.Equal(t, shared.String(), hits[0].ID)
	require.Len(t, hits[0].Threads, 100)
	require.Equal(t, "m1", hits[1].ID)
	require.LessOrEqual(t, asked, 2)

	hits, err = threads.FindHits(0, find)
	require.NoError(t, err)
	require.Len(t, hits, 3)
	_, err = threads.FindHits(math.MaxInt, find)
	require.NoError(t, err)
	broken := errors.New("broken")
	_, err = threads.FindHits(1, func(int) ([]chat.SearchResult, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
}
