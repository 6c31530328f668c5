package conversation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

// feature: branches/events
func TestEvents(t *testing.T) {
	c := newConversation(t, "a", "b")
	var heard []conversation.Event
	cancel := c.On(func(e conversation.Event) { heard = append(heard, e) })
	_, err := c.CreateBranch(bg, "alone", "Alone", nil)
	require.NoError(t, err)
	_, err = c.CreateBranch(bg, "alone", "Again", nil)
	require.ErrorIs(t, err, lineage.ErrExists)
	_, err = c.CreateBranch(bg, "child", "Child", &conversation.From{Branch: "main"})
	require.NoError(t, err)
	fork(t, c, "Fork")
	_, err = c.ForkFromMessage(bg, "First", 1)
	require.NoError(t, err)
	checkout(t, c, "main")
	_, err = c.Merge(bg, "fork", conversation.Append)
	require.NoError(t, err)
	_, err = c.Merge(bg, "first", conversation.Replace)
	require.NoError(t, err)
	require.NoError(t, c.RenameBranch(bg, "fork", "Renamed"))
	require.NoError(t, c.DeleteBranch(bg, "fork"))
	cancel()
	require.NoError(t, c.DeleteBranch(bg, "first"))
	require.Equal(t, []conversation.Event{
		{Kind: conversation.BranchCreated, ID: "alone", Name: "Alone"},
		{Kind: conversation.BranchCreated, ID: "child", Name: "Child", ParentID: "main"},
		{Kind: conversation.BranchCreated, ID: "fork", Name: "Fork", ParentID: "main"},
		{Kind: conversation.BranchForked, From: "main", To: "fork", Name: "Fork"},
		{Kind: conversation.BranchCheckout, From: "main", To: "fork"},
		{Kind: conversation.BranchCreated, ID: "first", Name: "First", ParentID: "fork"},
		{Kind: conversation.BranchForked, From: "fork", To: "first", Name: "First", MessageIndex: pointer(1)},
		{Kind: conversation.BranchCheckout, From: "fork", To: "first"},
		{Kind: conversation.BranchCheckout, From: "first", To: "main"},
		{Kind: conversation.BranchMerged, Source: "fork", Target: "main", Strategy: conversation.Append},
		{Kind: conversation.BranchMerged, Source: "first", Target: "main", Strategy: conversation.Replace, Changed: true},
		{Kind: conversation.BranchRenamed, ID: "fork", Name: "Renamed"},
		{Kind: conversation.BranchDeleted, ID: "fork"},
	}, heard)
}

// A listener may change the conversation, and everybody hears the same order.
func TestListenerCallsBack(t *testing.T) {
	c := newConversation(t, "a")
	var first, last []conversation.EventKind
	c.On(func(e conversation.Event) {
		first = append(first, e.Kind)
		if e.Kind == conversation.BranchForked {
			b, err := c.Branch(bg, e.To)
			require.NoError(t, err)
			require.True(t, b.Current, "it is called after the change")
			require.NoError(t, c.AddMessage(bg, user("from a listener")))
			checkout(t, c, "main")
			require.NoError(t, c.DeleteBranch(bg, e.To))
		}
	})
	c.On(func(e conversation.Event) { last = append(last, e.Kind) })
	b, err := c.CreateBranch(bg, "x", "X", nil)
	require.NoError(t, err)
	require.Equal(t, "x", b.ID)
	fork(t, c, "Fork")
	want := []conversation.EventKind{
		conversation.BranchCreated, conversation.BranchCreated, conversation.BranchForked,
		conversation.BranchCheckout, conversation.BranchCheckout, conversation.BranchDeleted,
	}
	require.Equal(t, want, first)
	require.Equal(t, want, last)
	require.Equal(t, conversation.Main, currentID(t, c))
}

func TestListenerCancelsItselfAndOthers(t *testing.T) {
	c := newConversation(t)
	calls := 0
	var cancelOther func()
	var cancelSelf func()
	cancelSelf = c.On(func(conversation.Event) {
		calls++
		cancelSelf()
		cancelOther()
		cancelOther()
	})
	cancelOther = c.On(func(conversation.Event) { t.Error("it was cancelled before") })
	fork(t, c, "Fork")
	require.Equal(t, 1, calls)
}

// A listener that panics takes its own call down, and no later one.
func TestListenerPanics(t *testing.T) {
	c := newConversation(t)
	var heard []conversation.EventKind
	cancel := c.On(func(conversation.Event) { panic("listener") })
	require.PanicsWithValue(t, "listener", func() { fork(t, c, "Fork") })
	cancel()
	c.On(func(e conversation.Event) { heard = append(heard, e.Kind) })
	checkout(t, c, "main")
	require.Equal(t, []conversation.EventKind{conversation.BranchForked, conversation.BranchCheckout, conversation.BranchCheckout}, heard)
}

// feature: branches/events-all
func TestEventsOfOtherManagers(t *testing.T) {
	s := storetest.NewTicking(t)
	open := func(id string) *conversation.Conversation {
		c, err := conversation.Open(bg, s, id, conversation.Options{})
		require.NoError(t, err)
		return c
	}
	a, b, elsewhere := open("one"), open("one"), open("two")
	var heardA, heardB []string
	cancelA := a.On(func(e conversation.Event) { heardA = append(heardA, e.ID) })
	cancelB := b.On(func(e conversation.Event) { heardB = append(heardB, e.ID) })
	create := func(c *conversation.Conversation, id string) {
		_, err := c.CreateBranch(bg, id, id, nil)
		require.NoError(t, err)
	}
	create(a, "x")
	create(b, "y")
	create(open("one"), "z")
	create(elsewhere, "other")
	cancelB()
	create(b, "w")
	cancelA()
	cancelA()
	create(b, "v")
	require.Equal(t, []string{"x", "y", "z", "w"}, heardA)
	require.Equal(t, []string{"x", "y", "z"}, heardB)
}

// feature: branches/merge-again
func TestMergeThatAddsNothing(t *testing.T) {
	c := newConversation(t, "a")
	fork(t, c, "Fork")
	require.NoError(t, c.AddMessage(bg, user("b")))
	checkout(t, c, "main")
	var changed []bool
	c.On(func(e conversation.Event) {
		if e.Kind == conversation.BranchMerged {
			changed = append(changed, e.Changed)
		}
	})
	for _, strategy := range []conversation.MergeStrategy{conversation.Append, conversation.Append, conversation.Replace, conversation.Replace} {
		added, err := c.Merge(bg, "fork", strategy)
		require.NoError(t, err)
		require.Equal(t, len(changed) == 1, len(added) > 0)
	}
	require.Equal(t, []bool{true, false, true, false}, changed)
}
