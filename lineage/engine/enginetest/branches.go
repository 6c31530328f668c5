package enginetest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
)

// feature: state/rewind
// feature: state/no-deletion
// feature: state/unknown
func testRewind(t *testing.T, s *store) {
	talk(s, "other", "o")
	c := talk(s, "c", "")
	c.set(user("dropped"), engine.Hint("kept"))
	b := c.rewind("a1")
	require.NotEmpty(t, b.ID)
	require.NotZero(t, b.CreatedAt)
	require.Equal(t, chat.BranchInfo{
		Branch:       chat.Branch{ID: b.ID, ChatID: "c", Name: "main-v2", HeadMessageID: "a1", IsActive: true, CreatedAt: b.CreatedAt},
		MessageCount: 2,
	}, b)
	stored, err := s.Branch(background, "c", "main-v2")
	require.NoError(t, err)
	require.Equal(t, b.Branch, *stored)
	require.Empty(t, c.Pending())
	require.Len(t, c.Fragments(), 1)
	require.Equal(t, "main-v2", c.Branch())
	require.Equal(t, chat.Ref("a1"), c.Head())
	require.Equal(t, []string{"q1", "a1"}, c.says())
	c.save(user("q3"))
	require.Equal(t, []string{"q1", "a1", "q3"}, s.on("c", "main-v2"))
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, s.on("c", "main"))

	c.set(user("kept"))
	for id, want := range map[string]error{"nobody": chat.ErrNotFound, "": chat.ErrNotFound, "oq1": chat.ErrOtherChat} {
		_, err := c.Rewind(background, id)
		requireError(t, err, want, chat.SubjectMessage, id)
	}
	require.Equal(t, []string{"kept"}, c.pendingTexts())
	require.Equal(t, []string{"main", "main-v2*"}, s.names("c"))

	// To the current end of the branch, and to a message on another branch.
	require.Equal(t, 3, c.rewind(string(c.Head())).MessageCount)
	require.Equal(t, "main-v2-v2-v2", c.rewind("a2").Name)
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, c.says())
}

// feature: state/aside
func testAside(t *testing.T, s *store) {
	c := s.open("c")
	_, err := c.Aside(background)
	requireError(t, err, engine.ErrNoMessages, chat.SubjectBranch, "main")
	c.set(user("q1"))
	_, err = c.Aside(background)
	require.ErrorIs(t, err, engine.ErrNoMessages, "a pending message is none yet")
	c.save()
	c.set(user("pending"))
	b, err := c.Aside(background)
	require.NoError(t, err)
	require.Equal(t, chat.BranchInfo{
		Branch:       chat.Branch{ID: b.ID, ChatID: "c", Name: "main-v2", HeadMessageID: "q1", CreatedAt: b.CreatedAt},
		MessageCount: 1,
	}, b)
	require.Equal(t, []string{"main*", "main-v2"}, s.names("c"))
	require.Equal(t, "main", c.Branch())
	require.Equal(t, []string{"pending"}, c.pendingTexts())
	c.save()
	require.Equal(t, []string{"q1", "pending"}, s.on("c", "main"))
	require.Equal(t, []string{"q1"}, s.on("c", "main-v2"))

	// It starts at the current end of the branch, not at the end that this engine last read.
	s.open("c").save(user("q2"))
	b, err = c.Aside(background)
	require.NoError(t, err)
	require.Equal(t, chat.Ref("q2"), b.HeadMessageID)
	require.Equal(t, 3, b.MessageCount)
}

// feature: state/switch
// feature: state/unknown
func testSwitch(t *testing.T, s *store) {
	talk(s, "other", "o").rewind("oq1")
	c := talk(s, "c", "")
	c.rewind("q1")
	c.set(user("pending"))
	for _, name := range []string{"nowhere", "", "Main"} {
		err := c.SwitchBranch(background, name)
		requireError(t, err, chat.ErrNotFound, chat.SubjectBranch, name)
	}
	require.Equal(t, []string{"pending"}, c.pendingTexts())
	require.Equal(t, []string{"main", "main-v2*"}, s.names("c"))
	c.switchTo("main")
	require.Empty(t, c.Pending())
	require.Equal(t, []string{"main*", "main-v2"}, s.names("c"))
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, c.says())
	c.switchTo("main")
	c.save(user("q3"))
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "q3"}, s.on("c", "main"))

	// A branch created by another process.
	_, err := s.CreateBranch(background, chat.Branch{ChatID: "c", Name: "their own", HeadMessageID: "a1"})
	require.NoError(t, err)
	c.switchTo("their own")
	require.Equal(t, "their own-v2", c.rewind("q1").Name)
}

// feature: state/restore
// feature: state/checkpoint-stays
// feature: state/restore-unknown
func testCheckpoints(t *testing.T, s *store) {
	c := s.open("c")
	c.set(user("q1"))
	_, err := c.Checkpoint(background, "early")
	requireError(t, err, engine.ErrNoMessages, chat.SubjectCheckpoint, "early")
	_, err = c.Restore(background, "early")
	requireError(t, err, chat.ErrNotFound, chat.SubjectCheckpoint, "early")
	c.save(assistant("a1"))
	k, err := c.Checkpoint(background, "here")
	require.NoError(t, err)
	require.Equal(t, chat.Checkpoint{ID: k.ID, ChatID: "c", Name: "here", MessageID: "a1", CreatedAt: k.CreatedAt}, k)
	require.NotEmpty(t, k.ID)
	_, err = c.Checkpoint(background, "")
	require.ErrorIs(t, err, chat.ErrInvalid)
	c.save(user("q2"))

	c.set(user("dropped"))
	b, err := c.Restore(background, "here")
	require.NoError(t, err)
	require.Equal(t, "main-v2", b.Name)
	require.Equal(t, chat.Ref("a1"), b.HeadMessageID)
	require.Equal(t, 2, b.MessageCount)
	require.True(t, b.IsActive)
	require.Empty(t, c.Pending())
	require.Equal(t, []string{"q1", "a1"}, c.says())
	require.Equal(t, []string{"q1", "a1", "q2"}, s.on("c", "main"))

	c.save(user("q3"))
	moved, err := c.Checkpoint(background, "here")
	require.NoError(t, err)
	require.Equal(t, k.ID, moved.ID, "a name that is there moves")
	require.Equal(t, "q3", moved.MessageID)
	all, err := c.Checkpoints(background)
	require.NoError(t, err)
	require.Equal(t, []chat.Checkpoint{moved}, all)
	require.NoError(t, c.DeleteCheckpoint(background, "here"))
	require.NoError(t, c.DeleteCheckpoint(background, "here"), "there is nothing left to do")
	_, err = c.Restore(background, "here")
	requireError(t, err, chat.ErrNotFound, chat.SubjectCheckpoint, "here")
}

// feature: state/branch-names
func testNames(t *testing.T, s *store) {
	c := talk(s, "c", "")
	aside := func() string {
		b, err := c.Aside(background)
		require.NoError(t, err)
		return b.Name
	}
	require.Equal(t, "main-v2", aside())
	require.Equal(t, "main-v3", c.rewind("q1").Name)
	require.Equal(t, "main-v3-v2", c.rewind("q1").Name)
	c.switchTo("main")
	require.Equal(t, "main-v5", aside(), "descendants count")

	// Names taken by other branches.
	for _, name := range []string{"main-v7", "main-v9", "mainly", "main-x"} {
		_, err := s.CreateBranch(background, chat.Branch{ChatID: "c", Name: name})
		require.NoError(t, err)
	}
	require.Equal(t, "main-v8", aside())
	require.Equal(t, "main-v10", aside(), "9 is taken")
	c.save(says("user", "q1", "anew"))
	require.Equal(t, "main-v11", c.Branch())

	// Names do not grow forever.
	seen := map[string]bool{}
	for range 100 {
		b := c.rewind("q1")
		require.False(t, seen[b.Name], b.Name)
		seen[b.Name] = true
		require.LessOrEqual(t, len(b.Name), 200)
	}
	for i, name := range []string{strings.Repeat("ü", 120), strings.Repeat("x", 200), strings.Repeat("-v", 100)} {
		_, err := s.CreateBranch(background, chat.Branch{ChatID: "c", Name: name, HeadMessageID: "q1"})
		require.NoError(t, err)
		c.switchTo(name)
		first, second := aside(), aside()
		require.NotEqual(t, first, second, i)
		require.LessOrEqual(t, len(second), 200)
		require.Equal(t, fmt.Sprintf("%.4s", name), fmt.Sprintf("%.4s", first))
	}
}

// feature: storage/graph
func testGraph(t *testing.T, s *store) {
	c := talk(s, "c", "")
	_, err := c.Checkpoint(background, "here")
	require.NoError(t, err)
	c.save(says("user", "q2", strings.Repeat("long ", 20)))
	g, err := c.Graph(background)
	require.NoError(t, err)
	require.Equal(t, "c", g.ChatID)
	require.Len(t, g.Nodes, 5)
	for _, n := range g.Nodes {
		if n.ID == string(c.Head()) {
			require.Equal(t, chat.Ref("a1"), n.ParentID)
			require.Equal(t, strings.Repeat("long ", 10)+"...", n.Content)
		}
	}
	require.ElementsMatch(t, []chat.GraphBranch{
		{Name: "main", HeadMessageID: "a2"}, {Name: "main-v2", HeadMessageID: c.Head(), IsActive: true},
	}, g.Branches)
	require.Equal(t, []chat.GraphCheckpoint{{Name: "here", MessageID: "a2"}}, g.Checkpoints)

	infos, err := c.Branches(background)
	require.NoError(t, err)
	counts := map[string]int{}
	for _, b := range infos {
		counts[b.Name] = b.MessageCount
	}
	require.Equal(t, map[string]int{"main": 4, "main-v2": 3}, counts)
}

// chainless is a store that fails the test when a chain is read.
type chainless struct {
	chat.Store
	t require.TestingT
}

func (c *chainless) MessageChain(context.Context, string, string) iter.Seq2[chat.Message, error] {
	require.FailNow(c.t, "a chain was read")
	return nil
}

func (c *chainless) Ancestors(context.Context, string, string) iter.Seq2[chat.Message, error] {
	require.FailNow(c.t, "a chain was read")
	return nil
}

func testBranchingReadsNoChain(t *testing.T, s *store) {
	s.open("c").save(user("q1"), assistant("a1"), user("q2"))
	c := (&store{Store: &chainless{s.Store, t}, t: t}).open("c")
	b, err := c.Aside(background)
	require.NoError(t, err)
	require.Equal(t, 3, b.MessageCount)
	_, err = c.Checkpoint(background, "here")
	require.NoError(t, err)
	require.Equal(t, 2, c.rewind("a1").MessageCount)
	b, err = c.Restore(background, "here")
	require.NoError(t, err)
	require.Equal(t, 3, b.MessageCount)
}
