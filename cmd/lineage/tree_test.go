package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// A message that a thread keeps and no branch leads to is drawn, and counted before the thread is deleted.
func TestKeptMessagesAreShown(t *testing.T) {
	dir := newStore(t)
	s, err := lineage.Open(t.Context(), dir, lineage.Options{})
	require.NoError(t, err)
	thread, err := s.CreateThread(t.Context(), lineage.ThreadOptions{SourceID: "kept", Keep: true})
	require.NoError(t, err)
	_, err = thread.AddAfter(t.Context(), lineage.SpanRef{}, lineage.User("in no branch"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Contains(t, runLine(t.Context(), "tree", "kept", "--store", dir).out, "in no branch")
	require.Contains(t, runLine(t.Context(), "thread", "delete", "kept", "--store", dir).err, "with 1 message and 1 branch")
}
