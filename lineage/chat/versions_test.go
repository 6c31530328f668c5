package chat

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// requireForeseen requires that the histories of all contexts of a chat read the same where the later versions
// of messages are found first as where each message is looked up.
func requireForeseen(t require.TestingT, store *lineage.Store, chatID string) (later int) {
	ctx, s := context.Background(), latest(store)
	thread, err := s.thread(ctx, chatID)
	require.NoError(t, err)
	one, all := s.reading(thread), s.reading(thread)
	require.NoError(t, all.findLaterVersions(ctx, 1<<20))
	require.NotNil(t, all.laterVersions)
	for c, err := range s.from.Contexts(ctx, thread.ID, structure.ContextID{}) {
		require.NoError(t, err)
		if c.Tip.IsZero() {
			continue
		}
		var want, got []Message
		for m, err := range one.chain(ctx, c.Tip, structure.Window{}) {
			require.NoError(t, err)
			want = append(want, m)
		}
		for m, err := range all.chain(ctx, c.Tip, structure.Window{}) {
			require.NoError(t, err)
			got = append(got, m)
		}
		require.Equal(t, want, got)
	}
	return len(all.laterVersions)
}

// Long histories with versions of messages read as short ones do, forwards, backwards and as a graph, also in a
// thread that shares them.
func TestForesee(t *testing.T) {
	ctx := context.Background()
	rapid.Check(t, func(r *rapid.T) {
		store, err := lineage.OpenMemory(ctx, lineage.Options{})
		require.NoError(r, err)
		defer store.Close()
		c := &changing{parents: map[string]string{}, says: map[string]string{}, heads: map[string]string{}}
		parent := ""
		for i := range fewMessages + rapid.IntRange(1, 40).Draw(r, "more") {
			id := fmt.Sprint("m", i)
			c.ids, c.parents[id], c.says[id], parent = append(c.ids, id), parent, id, id
		}
		c.heads["main"], c.heads["side"] = parent, c.ids[rapid.IntRange(0, len(c.ids)-1).Draw(r, "side")]
		versions := 0
		for round := range rapid.IntRange(1, 3).Draw(r, "loadings") {
			if round > 0 {
				c.says[rapid.SampledFrom(c.ids).Draw(r, "changed")] = fmt.Sprint("changed ", round)
			}
			_, err := Load(ctx, store, c.loading(func(err error) { require.NoError(r, err) }))
			require.NoError(r, err)
			later := requireForeseen(r, store, "c")
			require.GreaterOrEqual(r, later, versions)
			require.Equal(r, round > 0, later > 0)
			versions = later
		}
		on := On(store)
		var chain, back []string
		for m, err := range on.MessageChain(ctx, "c", c.heads["main"]) {
			require.NoError(r, err)
			chain = append(chain, m.ID)
			require.JSONEq(r, fmt.Sprintf("%q", c.says[m.ID]), string(m.Data))
		}
		require.Equal(r, c.ids, chain)
		for m, err := range on.Ancestors(ctx, "c", c.heads["main"]) {
			require.NoError(r, err)
			back = append([]string{m.ID}, back...)
		}
		require.Equal(r, chain, back)
		g, err := on.Graph(ctx, "c")
		require.NoError(r, err)
		ids := make(map[string]bool)
		for _, n := range g.Nodes {
			require.False(r, ids[n.ID], "each id is one message: %s", n.ID)
			ids[n.ID] = true
		}
		for _, id := range c.ids {
			require.True(r, ids[id], id)
		}

		from, err := store.FindThread(ctx, "c")
		require.NoError(r, err)
		main, err := from.Active(ctx)
		require.NoError(r, err)
		to, err := on.CreateChat(ctx, Chat{ID: "d", UserID: "ada"})
		require.NoError(r, err)
		thread, err := store.FindThread(ctx, to.ID)
		require.NoError(r, err)
		_, err = main.Fork(ctx, lineage.ForkOptions{Thread: thread.ID()})
		require.NoError(r, err)
		require.Zero(r, requireForeseen(r, store, "d"))
	})
}
