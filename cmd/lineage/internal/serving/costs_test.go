package serving

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/usage"
)

// Where agents are followed, nobody has to ask for the usage first.
func TestCostOfFollowed(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	p := &sharedIndexes{store: store, dir: t.TempDir(), counts: true}
	_, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
	require.NoError(t, err)
	require.True(t, p.costsPending(t.Context()))
	require.Empty(t, p.cost(lineage.ThreadID{1}))
	require.Eventually(t, func() bool { return !p.costsPending(t.Context()) }, time.Minute, time.Millisecond)
	require.True(t, usage.Exists(p.dir))
	require.NoError(t, p.close())
}

// The cost of a conversation is known after somebody has asked for the usage of the store, and nothing is read for it before.
func TestCost(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	thread, err := store.CreateThread(t.Context(), lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := thread.Active(t.Context())
	require.NoError(t, err)
	_, err = main.Extend(t.Context(), lineage.Item{Role: "assistant", Type: "application/json",
		Body: []byte(`{"id":"m","model":"claude-sonnet-4-5","role":"assistant","content":"a","usage":{"input_tokens":100000,"output_tokens":0}}`)})
	require.NoError(t, err)
	p := &sharedIndexes{store: store, dir: t.TempDir()}
	require.Empty(t, p.cost(thread.ID()))
	running, _ := p.threads.state()
	require.False(t, running)
	require.False(t, p.costsPending(t.Context()))
	index, err := p.openCosts(t.Context())
	require.NoError(t, err)
	require.NoError(t, index.Update(t.Context()))
	require.True(t, p.costsPending(t.Context()))
	require.Eventually(t, func() bool { return p.cost(thread.ID()) == "$0.30" }, time.Minute, time.Millisecond)
	require.False(t, p.costsPending(t.Context()))
	_, err = main.Extend(t.Context(), lineage.User("more"))
	require.NoError(t, err)
	require.True(t, p.costsPending(t.Context()), "a commit that they do not have")
	p.threads.looked = time.Time{}
	p.cost(thread.ID())
	require.Eventually(t, func() bool { return !p.costsPending(t.Context()) }, time.Minute, time.Millisecond)
	require.NoError(t, p.close())
	require.Equal(t, "$0.30", p.cost(thread.ID()), "what is known stays")
	require.Empty(t, p.cost(lineage.ThreadID{1}))
}
