package enginetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/lineage/engine"
)

// talk opens a chat with the messages q1, a1, q2, a2. Their ids start with prefix.
func talk(s *store, chatID, prefix string) *conversation {
	c := s.open(chatID)
	c.save(user(prefix+"q1"), assistant(prefix+"a1"))
	c.save(user(prefix+"q2"), assistant(prefix+"a2"))
	return c
}

// feature: state/new-version
// feature: state/original
func testNewVersion(t *testing.T, s *store) {
	c := talk(s, "c", "")
	before, err := s.Message(background, "c", "q2")
	require.NoError(t, err)
	head := c.save(says("user", "q2", "better"), assistant("a3"))
	require.Equal(t, chat.Ref("a3"), head, "an id that is new stays")
	require.Equal(t, "main-v2", c.Branch())
	require.Equal(t, []string{"main", "main-v2*"}, s.names("c"))
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, s.on("c", "main"), "the original is untouched")
	require.Equal(t, []string{"q1", "a1", "better", "a3"}, s.on("c", "main-v2"))
	after, err := s.Message(background, "c", "q2")
	require.NoError(t, err)
	require.Equal(t, before, after)

	// The branch works like any other, and the next version is named after it.
	c.save(user("q3"))
	require.Equal(t, []string{"q1", "a1", "better", "a3", "q3"}, c.says())
	c.save(says("assistant", "a3", "again"))
	require.Equal(t, "main-v2-v2", c.Branch())
	require.Equal(t, []string{"q1", "a1", "better", "again"}, c.says())

	require.Equal(t, 4+2+1+1, s.nodes("c"))
}

// testSameAgain saves messages again that are in the history, and some that are only on another
// branch.
//
// feature: engine/same-again
func testSameAgain(t *testing.T, s *store) {
	c := talk(s, "c", "")
	require.Equal(t, chat.Ref("a2"), c.save(user("q2")))
	require.Equal(t, chat.Ref("a2"), c.save(user("q1"), assistant("a1"), user("q2"), assistant("a2")))
	c.save(assistant("a2"), user("q3"))
	c.set(user("q1"), user("q4"))
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "q3", "q4"}, c.says())
	c.save()
	require.Equal(t, []string{"q1", "a1", "q2", "a2", "q3", "q4"}, s.on("c", "main"))
	require.Equal(t, []string{"main*"}, s.names("c"))
	require.Equal(t, 6, s.nodes("c"))

	// After a new version they are saved again, before it they are not.
	c.set(user("q1"), says("user", "q2", "Q2"), assistant("a2"), user("q3"))
	require.Equal(t, []string{"q1", "a1", "Q2", "a2", "q3"}, c.says())
	c.save()
	require.Equal(t, []string{"q1", "a1", "Q2", "a2", "q3"}, s.on("c", "main-v2"))
	require.Equal(t, 9, s.nodes("c"))

	// A message of another branch is not on this one.
	c.rewind("a1")
	c.set(assistant("a2"))
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, c.says())
	c.save()
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, s.chain("c", string(c.Head())))
	require.NotEqual(t, chat.Ref("a2"), c.Head())

	// The model is part of a message.
	c.switchTo("main")
	c.save(assistant("a2").From("other"))
	require.NotEqual(t, "main", c.Branch())
}

// feature: state/new-version
func testNewRoot(t *testing.T, s *store) {
	c := talk(s, "c", "")
	c.save(says("user", "q1", "from the start"))
	require.Equal(t, "main-v2", c.Branch())
	require.Equal(t, []string{"from the start"}, c.says())
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, s.on("c", "main"))
	m, err := s.Message(background, "c", string(c.Head()))
	require.NoError(t, err)
	require.Empty(t, m.ParentID)
}

// testSeveralVersions forks once, before the earliest version, wherever that is in the list.
func testSeveralVersions(t *testing.T, s *store) {
	c := talk(s, "c", "")
	c.save(says("user", "q2", "Q2"), user("new"), says("assistant", "a1", "A1"), says("assistant", "a2", "A2"))
	require.Equal(t, []string{"main", "main-v2*"}, s.names("c"))
	require.Equal(t, []string{"q1", "Q2", "new", "A1", "A2"}, c.says())
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, s.on("c", "main"))
	require.Equal(t, 8, s.nodes("c"))

	c = talk(s, "d", "d")
	c.save(says("assistant", "da1", "A1"), says("user", "dq1", "Q1"))
	require.Equal(t, []string{"A1", "Q1"}, c.says(), "a root among them")
	require.Equal(t, []string{"dq1", "da1", "dq2", "da2"}, s.on("d", "main"))

	// For a message on another branch, the new branch forks from that one.
	c.switchTo("main")
	c.save(says("user", string(s.firstOf("d", "main-v2")), "elsewhere"))
	require.Equal(t, []string{"elsewhere"}, c.says())
	require.Equal(t, "main-v3", c.Branch())
}

// firstOf returns the id of the first message of a branch.
func (s *store) firstOf(chatID, branch string) chat.Ref {
	b, err := s.Branch(background, chatID, branch)
	require.NoError(s.t, err)
	for m, err := range s.MessageChain(background, chatID, string(b.HeadMessageID)) {
		require.NoError(s.t, err)
		return chat.Ref(m.ID)
	}
	return ""
}

func testPendingVersions(t *testing.T, s *store) {
	c := s.open("c")
	c.set(user("q1"), assistant("a1"), says("user", "q1", "Q1"))
	require.Equal(t, []string{"Q1", "a1"}, c.says())
	c.save(says("assistant", "a1", "A1"), user("q2"))
	require.Equal(t, []string{"Q1", "A1", "q2"}, s.on("c", "main"))
	require.Equal(t, []string{"main*"}, s.names("c"))
	c.save(says("user", "q2", "one"), says("user", "q2", "two"))
	require.Equal(t, []string{"Q1", "A1", "two"}, s.on("c", "main-v2"))
	require.Equal(t, 4, s.nodes("c"))
}

func testOtherChat(t *testing.T, s *store) {
	talk(s, "other", "o")
	c := talk(s, "c", "")
	if chattest.Repeats(s.Store) {
		c.save(user("q3"), says("user", "oq1", "ours"))
		c.rewind("a2")
		c.save(says("user", "q2", "Q2"), says("user", "oa1", "ours"))
		require.Equal(t, []string{"q1", "a1", "q2", "a2", "q3", "ours"}, s.on("c", "main"))
		require.Equal(t, []string{"oq1", "oa1", "oq2", "oa2"}, s.on("other", "main"))
		return
	}
	c.set(user("q3"), says("user", "oq1", "stolen"))
	_, err := c.Save(background)
	requireError(t, err, chat.ErrOtherChat, chat.SubjectMessage, "oq1")
	require.Equal(t, []string{"q3", "stolen"}, c.pendingTexts())
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, s.on("c", "main"))
	require.Equal(t, []string{"oq1", "oa1", "oq2", "oa2"}, s.on("other", "main"))
	require.Equal(t, 4, s.nodes("c"))

	// Together with a new version in the same chat.
	c.rewind("a2")
	c.set(says("user", "q2", "Q2"), says("user", "oq1", "stolen"))
	_, err = c.Save(background)
	requireError(t, err, chat.ErrOtherChat, chat.SubjectMessage, "oq1")
	require.Len(t, c.Pending(), 2)
	require.Equal(t, []string{"main", "main-v2*"}, s.names("c"))
}

// feature: engine/correction
// feature: lazy/last-assistant
// feature: lazy/pending
// feature: state/save-lazy
func testLastAssistant(t *testing.T, s *store) {
	fixed := engine.LastAssistantMessage
	// feature: lazy/none
	t.Run("none", func(t *testing.T) {
		c := s.open("none")
		c.save(user("nq1"), fixed("first"))
		require.Equal(t, []string{"nq1", "first"}, s.on("none", "main"))
		require.Equal(t, []string{"main*"}, s.names("none"))
		m, err := s.Message(background, "none", string(c.Head()))
		require.NoError(t, err)
		require.Equal(t, "assistant", m.Name)
	})
	t.Run("on the branch", func(t *testing.T) {
		c := talk(s, "branch", "b")
		c.save(user("bq3"), user("bq4"))
		c.set(fixed("one"), fixed("two"))
		require.Equal(t, []string{"bq1", "ba1", "bq2", "two"}, c.says(), "the line that a save leads to")
		require.True(t, engine.IsLazy(c.Pending()[0]), "and not decided on either")
		c.save()
		require.Equal(t, []string{"bq1", "ba1", "bq2", "two"}, s.on("branch", "main-v2"))
		require.Equal(t, []string{"bq1", "ba1", "bq2", "ba2", "bq3", "bq4"}, s.on("branch", "main"))
	})
	t.Run("pending", func(t *testing.T) {
		c := talk(s, "pending", "p")
		c.set(user("pq3"), assistant("pa3"), assistant("pa4"), fixed("fixed"), user("pq4"))
		want := []string{"pq1", "pa1", "pq2", "pa2", "pq3", "pa3", "fixed", "pq4"}
		require.Equal(t, want, c.says())
		c.save()
		require.Equal(t, want, s.on("pending", "main"))
		require.Equal(t, []string{"main*"}, s.names("pending"))
		m, err := s.Message(background, "pending", "pa4")
		require.NoError(t, err)
		require.Equal(t, "fixed", textOf(t, *m))
	})
	t.Run("set before it", func(t *testing.T) {
		c := talk(s, "before", "c")
		c.set(fixed("fixed"), user("cq3"), assistant("ca3"))
		c.save()
		require.Equal(t, []string{"cq1", "ca1", "cq2", "ca2", "cq3", "fixed"}, s.on("before", "main"))
	})
	t.Run("a pending version", func(t *testing.T) {
		c := talk(s, "version", "v")
		c.save(says("assistant", "va1", "VA1"), fixed("fixed"))
		require.Equal(t, []string{"vq1", "fixed"}, s.on("version", "main-v2"))
		require.Equal(t, []string{"vq1", "va1", "vq2", "va2"}, s.on("version", "main"))
	})
	t.Run("of somebody else", func(t *testing.T) {
		c, other := talk(s, "else", "e"), s.open("else")
		c.set(fixed("fixed"))
		other.save(user("eq3"), assistant("ea3"))
		c.save()
		require.Equal(t, []string{"eq1", "ea1", "eq2", "ea2", "eq3", "fixed"}, c.says(), "the last when it is saved")
	})
	// feature: lazy/loop
	t.Run("a loop of corrections", func(t *testing.T) {
		c := s.open("loop")
		c.save(user("lq1"), assistant("la1"))
		for _, text := range []string{"x", "y", "z"} {
			c.save(fixed(text))
			require.Equal(t, []string{"lq1", text}, c.says())
		}
		require.Equal(t, []string{"main", "main-v2", "main-v2-v2", "main-v2-v2-v2*"}, s.names("loop"))
	})
}

// testOrigins saves an answer with a model and a new version with another model.
//
// feature: lineage/origin
func testOrigins(t *testing.T, s *store) {
	c := s.open("c")
	fragment := assistant("a1").From("large")
	fragment.Origin.UserID = "bob"
	c.save(user("q1"), fragment)
	c.save(says("assistant", "a1", "better").From("small"))
	better := c.Head()
	require.NotEqual(t, chat.Ref("a1"), better)
	require.NoError(t, c.Set(engine.LastAssistantMessage("best").From("tiny")))
	best, err := c.Save(background)
	require.NoError(t, err)

	// The text of a version may have been said before, here or in another chat.
	other := s.open("other")
	other.save(says("user", "o1", "known"))
	other.save(says("assistant", "o2", "first"))
	other.save(says("assistant", "o2", "known"))
	m, err := s.Message(background, "other", string(other.Head()))
	require.NoError(t, err)
	require.NotEmpty(t, m.Origin.DerivedFrom)

	for id, want := range map[string]chat.Origin{
		"q1": {}, "a1": {UserID: "bob", ModelID: "large"}, string(better): {ModelID: "small"}, string(best): {ModelID: "tiny"},
	} {
		m, err := s.Message(background, "c", id)
		require.NoError(t, err)
		got := m.Origin
		if id == string(better) || id == string(best) {
			require.NotEmpty(t, got.DerivedFrom)
			got.DerivedFrom = ""
		}
		require.Equal(t, want, got, id)
	}
}
