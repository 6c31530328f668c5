package refs

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/structure"
)

// TestWithin names everything of a thread that the resolver does not know in every form, from a thread that it knows.
func TestWithin(t *testing.T) {
	ctx, store := t.Context(), lineagetest.New(t, lineage.Options{})
	create := func(name string) (*lineage.Thread, *lineage.Context, []lineage.SpanRef) {
		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{SourceID: "source-" + name, Title: "Title of " + name, UserID: name})
		require.NoError(t, err)
		main, err := thread.Active(ctx)
		require.NoError(t, err)
		// Both have a message with the same id, and the same first words.
		spans, err := main.Extend(ctx, lineage.User("shared").WithID("msg"), lineage.User("only of "+name).WithID("msg-"+name), lineage.User("rewound "+name))
		require.NoError(t, err)
		return thread, main, spans
	}
	ours, main, own := create("ours")
	theirs, other, foreign := create("theirs")
	_, err := theirs.SetCheckpoint(ctx, "secret-point", lineage.CheckpointOptions{At: foreign[1]})
	require.NoError(t, err)
	_, err = theirs.CreateBranch(ctx, "secret-branch", lineage.BranchOptions{From: other, At: foreign[1]})
	require.NoError(t, err)
	require.NoError(t, other.MoveTo(ctx, foreign[0], "rewind"))
	alone, err := store.NewContext(ctx, lineage.ContextOptions{})
	require.NoError(t, err)
	lone, err := alone.Extend(ctx, lineage.User("alone"))
	require.NoError(t, err)
	entries, err := store.Span(ctx, foreign[1])
	require.NoError(t, err)

	within := func() *Resolver {
		return New(store, ours).Within(func(t *structure.Thread) bool { return t.UserID == "ours" }, store.FindThread)
	}
	r := within()
	run := foreign[1].Run.String()
	foreignNames := []string{
		"source-theirs", "Title of theirs", "title OF theirs", theirs.ID().String(), Short(theirs.ID()),
		other.ID().String(), Short(other.ID()), "secret-point", "secret-branch", "source-theirs/main", Short(theirs.ID()) + "/secret-point",
		theirs.ID().String() + "/" + foreign[1].String(), foreign[1].String(), foreign[0].String(), ShortSpan(foreign[1]), run[len(run)-6:] + "/2",
		foreign[1].String() + ".0", "msg-theirs", other.ID().String() + "@{-1}", Short(other.ID()) + "@{-1}", Short(other.ID()) + ":1", foreign[2].String() + "~1",
		alone.ID().String(), Short(alone.ID()), lone[0].String(), ShortSpan(lone[0]),
	}
	for _, name := range foreignNames {
		_, err := New(store, theirs).Find(ctx, name)
		if !strings.Contains(name, "alone") {
			require.NoError(t, err, "%s is a name in the store", name)
		}
		_, err = r.Find(ctx, name)
		require.ErrorIs(t, err, lineage.ErrNotFound, name)
		require.NotContains(t, hintOf(err), "theirs", name)
		require.NotContains(t, hintOf(err), "secret", name)
		_, err = r.Context(ctx, name)
		require.ErrorIs(t, err, lineage.ErrNotFound, name)
		_, err = r.Thread(ctx, name)
		require.ErrorIs(t, err, lineage.ErrNotFound, name)
		require.NotContains(t, hintOf(err), "theirs", name)
	}
	_, err = r.Content(ctx, entries[0].Content.String()[:12])
	require.ErrorIs(t, err, lineage.ErrNotFound)
	_, err = r.Thread(ctx, "title of theirz")
	require.NotContains(t, hintOf(err), "theirs")

	for name, want := range map[string]lineage.SpanRef{
		"": own[2], "main~1": own[1], "msg": own[0], "source-ours": own[2], Short(ours.ID()): own[2], ShortSpan(own[1]): own[1], own[1].String(): own[1],
		main.ID().String(): own[2], Short(main.ID()) + "~2": own[0],
	} {
		found, err := r.Find(ctx, name)
		require.NoError(t, err, name)
		require.Equal(t, want, found.Span, name)
	}

	// What a thread of ours has of another one's history is ours to read, and no message after it.
	_, err = ours.CreateBranch(ctx, "taken", lineage.BranchOptions{From: other, At: foreign[1]})
	require.NoError(t, err)
	r = within()
	for name, one := range map[string]bool{
		foreign[0].String(): true, foreign[1].String(): true, ShortSpan(foreign[1]): true, "taken": true, "taken~1": true,
		foreign[2].String(): false, ShortSpan(foreign[2]): false, other.ID().String(): false, "msg-theirs": false, "secret-point": false,
	} {
		_, err := r.Find(ctx, name)
		require.Equal(t, one, err == nil, "%s: %v", name, err)
	}
	sees, err := r.Sees(ctx, foreign[2])
	require.NoError(t, err)
	require.False(t, sees)

	// A thread that was deleted and made again does not have the messages of the first.
	require.NoError(t, theirs.Delete(ctx))
	r = within()
	for _, name := range []string{foreign[2].String(), "source-theirs"} {
		_, err := r.Find(ctx, name)
		require.ErrorIs(t, err, lineage.ErrNotFound, name)
	}
}

func hintOf(err error) string {
	if h := (interface{ Hint() string })(nil); errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}
