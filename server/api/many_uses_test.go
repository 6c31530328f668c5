package api

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/access"
)

// A token sees of a content that many threads of others have said its own uses only, on whichever page of checked runs they are. It
// sees none while it has none, and none of a thread that is deleted, made again by another user, or shared with a fork of others.
func TestOwnUsesAmongMany(t *testing.T) {
	h := open(t)
	ctx, threads := t.Context(), 0
	say := func(user string) *lineage.Thread {
		threads++
		thread, err := h.store.CreateThread(ctx, lineage.ThreadOptions{UserID: user, SourceID: fmt.Sprint(threads)})
		require.NoError(t, err)
		main, err := thread.Active(ctx)
		require.NoError(t, err)
		_, err = main.Extend(ctx, lineage.User("the word"))
		require.NoError(t, err)
		return thread
	}
	first := say("bob")
	main, err := first.Active(ctx)
	require.NoError(t, err)
	last, err := main.Last(ctx, 1)
	require.NoError(t, err)
	uses := "/v1/content/" + last[0].Content.String() + "/uses"
	content := "/v1/content/" + last[0].Content.String() + "/provenance"
	for range access.UsesAtOnce + 2 {
		say("bob")
	}
	for _, at := range []string{uses, content} {
		h.do("GET", at, nil, "Caller: ada").is(404)
	}

	// A thread of ada from which bob forks: the fork shows her nothing of bob.
	own := say("ada")
	for range access.UsesAtOnce - 3 {
		say("bob")
	}
	second := say("ada")
	name := fmt.Sprint(threads)
	for range 5 {
		say("bob")
	}
	require.Len(t, h.do("GET", uses, nil, "Caller: ada").items(), 2)
	require.Len(t, h.do("GET", uses+"?limit=1", nil, "Caller: ada").items(), 1)
	h.do("GET", content, nil, "Caller: ada").is(200)
	require.NoError(t, own.Delete(ctx))
	require.Len(t, h.do("GET", uses, nil, "Caller: ada").items(), 1)

	// What bob says after her message is in a run of his own, and her message does not become his.
	hers, err := second.Active(ctx)
	require.NoError(t, err)
	fork, err := hers.Fork(ctx, lineage.ForkOptions{Thread: first.ID()})
	require.NoError(t, err)
	_, err = fork.Extend(ctx, lineage.User("the word"), lineage.User("only of bob"))
	require.NoError(t, err)
	require.Len(t, h.do("GET", uses, nil, "Caller: ada").items(), 1)
	of, err := fork.Last(ctx, 1)
	require.NoError(t, err)
	h.do("GET", fmt.Sprint("/v1/content/", of[0].Content, "/uses"), nil, "Caller: ada").is(404)

	// With her last thread gone, she sees nothing again, whoever makes one of its id.
	require.NoError(t, second.Delete(ctx))
	again, err := h.store.CreateThread(ctx, lineage.ThreadOptions{UserID: "bob", SourceID: name})
	require.NoError(t, err)
	require.Equal(t, second.ID(), again.ID())
	for _, at := range []string{uses, content} {
		h.do("GET", at, nil, "Caller: ada").is(404)
	}
}
