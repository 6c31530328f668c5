//test:race

package conversation_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/conversation"
	"github.com/lineage-store/lineage/structure"
)

// feature: branches/main
func TestOpenMakesMain(t *testing.T) {
	s := storetest.NewTicking(t)
	c := open(t, s)
	b, err := c.CurrentBranch(bg)
	require.NoError(t, err)
	require.Equal(t, conversation.Main, b.ID)
	require.Equal(t, "Main conversation", b.Name)
	require.True(t, b.Current)
	require.Zero(t, b.MessageCount)
	require.Empty(t, b.ParentID)
	require.Empty(t, said(t, c))
	thread, err := s.FindThread(bg, "session")
	require.NoError(t, err)
	require.Equal(t, thread.ID(), c.Thread().ID())
}

// feature: branches/kept
func TestOpenGoesOn(t *testing.T) {
	s := storetest.NewTicking(t)
	idea := fork(t, open(t, s), "Idea")
	require.Equal(t, idea.ID, currentID(t, open(t, s)))
	c, err := conversation.Open(bg, s, "session", conversation.Options{StartOnMain: true})
	require.NoError(t, err)
	require.Equal(t, conversation.Main, currentID(t, c))
}

func TestOpenOfAnotherUser(t *testing.T) {
	store := storetest.NewTicking(t)
	_, err := conversation.Open(bg, store, "shared", conversation.Options{UserID: "alice"})
	require.NoError(t, err)
	_, err = conversation.Open(bg, store, "shared", conversation.Options{UserID: "bob"})
	require.ErrorIs(t, err, lineage.ErrOtherUser)
	for _, user := range []string{"alice", ""} {
		_, err = conversation.Open(bg, store, "shared", conversation.Options{UserID: user})
		require.NoError(t, err)
	}
}

func TestOpenRefusesNoSession(t *testing.T) {
	s := storetest.NewTicking(t)
	for _, id := range []string{"", " ", "\xff"} {
		_, err := conversation.Open(bg, s, id, conversation.Options{})
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
}

func TestOpenThreadOfOthers(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "session"})
	require.NoError(t, err)
	active, err := thread.Active(bg)
	require.NoError(t, err)
	spans, err := active.Extend(bg, lineage.User("a"), lineage.User("b"))
	require.NoError(t, err)
	_, err = thread.CreateBranch(bg, "", lineage.BranchOptions{At: spans[0], Switch: true})
	require.NoError(t, err)
	rewound, err := thread.Branch(bg, "")
	require.NoError(t, err)
	named, err := thread.BranchContext(bg, conversation.Main)
	require.NoError(t, err)
	require.NoError(t, thread.NameBranch(bg, "trunk", named))

	c := open(t, s)
	require.Equal(t, []string{"a"}, said(t, c))
	b, err := c.Branch(bg, rewound.Name)
	require.NoError(t, err)
	require.Equal(t, rewound.Name, b.Name)
	require.Equal(t, "trunk", b.ParentID)
	require.Equal(t, 1, b.ParentMessageIndex)
	_, err = c.Branch(bg, conversation.Main)
	require.NoError(t, err)

	// A branch keeps the parent that it is seen to have when it gets a name.
	require.NoError(t, c.RenameBranch(bg, rewound.Name, "Second thoughts"))
	again, err := c.Branch(bg, rewound.Name)
	require.NoError(t, err)
	require.Equal(t, "Second thoughts", again.Name)
	require.Equal(t, b.ParentID, again.ParentID)
	require.Equal(t, b.ParentMessageIndex, again.ParentMessageIndex)
}

// A thread of which no branch is active, as some bundles have, goes on with main.
//
// feature: branches/main
func TestOpenWithoutActive(t *testing.T) {
	s := storetest.NewTicking(t)
	c := open(t, s)
	say(t, c, "a")
	fork(t, c, "Idea")
	say(t, c, "b")
	engine := write.Of(s).Engine()
	was, err := engine.Thread(bg, c.Thread().ID())
	require.NoError(t, err)
	now := *was
	now.Active = lineage.ContextID{}
	_, err = engine.Apply(bg, &structure.Commit{Records: []structure.Record{&now}}, backend.Options{})
	require.NoError(t, err)
	require.Equal(t, conversation.Main, currentID(t, c))
	require.Equal(t, []string{"a"}, said(t, c))

	c = open(t, s)
	say(t, c, "c")
	require.Equal(t, []string{"a", "c"}, said(t, c))
}

// An empty id is that of the current branch where a branch is read.
func TestEmptyIDIsCurrent(t *testing.T) {
	c := newConversation(t, "a")
	idea := fork(t, c, "Idea")
	say(t, c, "b")
	b, err := c.Branch(bg, "")
	require.NoError(t, err)
	require.Equal(t, idea.ID, b.ID)
	require.Equal(t, []string{"a", "b"}, saidOn(t, c, ""))
	b, err = c.CreateBranch(bg, "child", "Child", &conversation.From{})
	require.NoError(t, err)
	require.Equal(t, []any{idea.ID, 2}, []any{b.ParentID, b.ParentMessageIndex})
}

// feature: branches/create
// feature: branches/fields
func TestCreateBranch(t *testing.T) {
	c := newConversation(t, "a", "b", "c")
	for _, row := range []struct {
		id   string
		from *conversation.From
		want []string
	}{
		{"none", nil, []string{}},
		{"zero", &conversation.From{Branch: "main", MessageIndex: pointer(0)}, []string{}},
		{"two", &conversation.From{Branch: "main", MessageIndex: pointer(2)}, []string{"a", "b"}},
		{"three", &conversation.From{Branch: "main", MessageIndex: pointer(3)}, []string{"a", "b", "c"}},
		{"all", &conversation.From{Branch: "main"}, []string{"a", "b", "c"}},
		{"../../etc/passwd", &conversation.From{Branch: "two"}, []string{"a", "b"}},
	} {
		t.Run(row.id, func(t *testing.T) {
			b, err := c.CreateBranch(bg, row.id, "Name of "+row.id, row.from)
			require.NoError(t, err)
			require.Equal(t, row.id, b.ID)
			require.Equal(t, "Name of "+row.id, b.Name)
			require.False(t, b.Current)
			require.Equal(t, len(row.want), b.MessageCount)
			if row.from == nil {
				require.Empty(t, b.ParentID)
			} else {
				require.Equal(t, row.from.Branch, b.ParentID)
				require.Equal(t, len(row.want), b.ParentMessageIndex)
			}
			messages, err := c.MessagesOf(bg, row.id)
			require.NoError(t, err)
			require.Equal(t, row.want, contents(messages))
			require.Equal(t, conversation.Main, currentID(t, c))
		})
	}
}

// feature: branches/checkout
// feature: branches/merge
// feature: branches/main
func TestRefusals(t *testing.T) {
	c := newConversation(t, "a", "b")
	_, err := c.CreateBranch(bg, "idea", "Idea", &conversation.From{Branch: "main"})
	require.NoError(t, err)
	create := func(id, name string, from *conversation.From) error {
		_, err := c.CreateBranch(bg, id, name, from)
		return err
	}
	for name, row := range map[string]struct {
		err  error
		want error
	}{
		"taken id":         {create("idea", "Other", nil), lineage.ErrExists},
		"main again":       {create("main", "Other", nil), lineage.ErrExists},
		"no id":            {create("", "Other", nil), lineage.ErrInvalid},
		"no name":          {create("new", "", nil), lineage.ErrInvalid},
		"binary id":        {create("\xff", "Other", nil), lineage.ErrInvalid},
		"unknown parent":   {create("new", "New", &conversation.From{Branch: "gone"}), lineage.ErrNotFound},
		"negative index":   {create("new", "New", &conversation.From{Branch: "main", MessageIndex: pointer(-1)}), lineage.ErrInvalid},
		"index too large":  {create("new", "New", &conversation.From{Branch: "main", MessageIndex: pointer(3)}), lineage.ErrInvalid},
		"fork at negative": {second(c.ForkFromMessage(bg, "New", -1)), lineage.ErrInvalid},
		"fork too far":     {second(c.ForkFromMessage(bg, "New", 3)), lineage.ErrInvalid},
		"fork unnamed":     {second(c.Fork(bg, "\t")), lineage.ErrInvalid},
		"checkout unknown": {second(c.Checkout(bg, "gone")), lineage.ErrNotFound},
		"merge unknown":    {second(c.Merge(bg, "gone", conversation.Append)), lineage.ErrNotFound},
		"merge itself":     {second(c.Merge(bg, "main", conversation.Append)), lineage.ErrInvalid},
		"replace itself":   {second(c.Merge(bg, "main", conversation.Replace)), lineage.ErrInvalid},
		"merge how":        {second(c.Merge(bg, "idea", 9)), lineage.ErrInvalid},
		"delete main":      {c.DeleteBranch(bg, "main"), lineage.ErrProtected},
		"delete unknown":   {c.DeleteBranch(bg, "gone"), lineage.ErrNotFound},
		"rename unknown":   {c.RenameBranch(bg, "gone", "New"), lineage.ErrNotFound},
		"rename no id":     {c.RenameBranch(bg, "", "New"), lineage.ErrInvalid},
		"rename to none":   {c.RenameBranch(bg, "idea", ""), lineage.ErrInvalid},
		"history unknown":  {second(c.History(bg, "gone")), lineage.ErrNotFound},
		"messages unknown": {second(c.MessagesOf(bg, "gone")), lineage.ErrNotFound},
		"no role":          {c.AddMessage(bg, conversation.Message{Content: "x"}), lineage.ErrInvalid},
	} {
		require.ErrorIs(t, row.err, row.want, name)
	}
	// Nothing happened.
	require.Equal(t, []string{"a", "b"}, said(t, c))
	branches, err := c.Branches(bg)
	require.NoError(t, err)
	require.Len(t, branches, 2)
	messages, err := c.MessagesOf(bg, "idea")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, contents(messages))
}

func second[T any](_ T, err error) error { return err }

// feature: branches/fork
func TestForkIDs(t *testing.T) {
	c := newConversation(t)
	for _, row := range []struct{ name, id string }{
		{"Try again!", "try-again"},
		{"try  AGAIN", "try-again-2"},
		{"../../etc", "etc"},
		{"¿Qué? 東京", "qué-東京"},
		{"!!!", "branch"},
		{"main", "main-2"},
		{"0123456789012345678901234567890123456789x", "0123456789012345678901234567890123456789"},
	} {
		b := fork(t, c, row.name)
		require.Equal(t, row.id, b.ID)
		require.Equal(t, row.name, b.Name)
		require.True(t, b.Current)
	}
}

// feature: branches/merge
func TestMergeTwiceAddsNothingTwice(t *testing.T) {
	c := newConversation(t, "a", "b")
	idea := fork(t, c, "Idea")
	say(t, c, "c", "d")
	checkout(t, c, "main")
	say(t, c, "m")
	for range 2 {
		_, err := c.Merge(bg, idea.ID, conversation.Append)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b", "m", "c", "d"}, said(t, c))
	}
	say(t, c, "only on main")
	checkout(t, c, idea.ID)
	require.Equal(t, []string{"a", "b", "c", "d"}, said(t, c))
}

//test:norace
func TestMergeLarge(t *testing.T) {
	const n = 10_000
	c := newConversation(t, "a")
	idea := fork(t, c, "Idea")
	messages := []conversation.Message{user("a")}
	for i := range n {
		messages = append(messages, user(fmt.Sprint(i%100)))
	}
	require.NoError(t, c.SetMessages(bg, messages))
	checkout(t, c, "main")
	_, err := c.Merge(bg, idea.ID, conversation.Append)
	require.NoError(t, err)
	merged, err := c.Messages(bg)
	require.NoError(t, err)
	require.Equal(t, messages, unmerged(merged))
}

// feature: branches/delete
func TestDeleteCurrent(t *testing.T) {
	c := newConversation(t, "a")
	idea := fork(t, c, "Idea")
	say(t, c, "b")
	child := fork(t, c, "Child")
	checkout(t, c, idea.ID)
	require.NoError(t, c.DeleteBranch(bg, idea.ID))
	require.Equal(t, conversation.Main, currentID(t, c))

	// What was made from it stays, and knows where it came from; a new branch under the
	// old id is another one.
	checkout(t, c, child.ID)
	require.Equal(t, []string{"a", "b"}, said(t, c))
	_, err := c.CreateBranch(bg, idea.ID, "Idea", &conversation.From{Branch: child.ID})
	require.NoError(t, err)
	history, err := c.History(bg, idea.ID)
	require.NoError(t, err)
	require.Equal(t, []string{child.ID, idea.ID}, ids(history))
	roots, err := c.Tree(bg)
	require.NoError(t, err)
	require.Len(t, roots, 2)
	require.Equal(t, idea.ID, roots[1].ParentID)
	require.Equal(t, idea.ID, roots[1].Children[0].ID)
}

func ids(branches []conversation.Branch) []string {
	var all []string
	for _, b := range branches {
		all = append(all, b.ID)
	}
	return all
}

// feature: branches/listing
func TestHistoryAndTree(t *testing.T) {
	c := newConversation(t, "a")
	fork(t, c, "Child 1")
	fork(t, c, "Grandchild")
	checkout(t, c, "main")
	fork(t, c, "Child 2")
	_, err := c.CreateBranch(bg, "alone", "Alone", nil)
	require.NoError(t, err)
	history, err := c.History(bg, "grandchild")
	require.NoError(t, err)
	require.Equal(t, []string{"main", "child-1", "grandchild"}, ids(history))
	roots, err := c.Tree(bg)
	require.NoError(t, err)
	require.Len(t, roots, 2)
	require.Equal(t, "main", roots[0].ID)
	require.Equal(t, "alone", roots[1].ID)
	require.Equal(t, "child-1", roots[0].Children[0].ID)
	require.Equal(t, "grandchild", roots[0].Children[0].Children[0].ID)
	require.Equal(t, "child-2", roots[0].Children[1].ID)
	require.True(t, roots[0].Children[1].Current)
}

// feature: branches/messages
func TestSetMessages(t *testing.T) {
	s := storetest.NewTicking(t)
	c := open(t, s)
	say(t, c, "a", "b", "c")
	active, err := c.Thread().Active(bg)
	require.NoError(t, err)
	was, err := active.Tip(bg)
	require.NoError(t, err)
	before, err := s.Stats(bg)
	require.NoError(t, err)
	set := func(contents ...string) {
		var messages []conversation.Message
		for _, text := range contents {
			messages = append(messages, user(text))
		}
		require.NoError(t, c.SetMessages(bg, messages))
		require.Equal(t, contents, said(t, c))
	}

	set("a", "b", "c") // nothing to do
	after, err := s.Stats(bg)
	require.NoError(t, err)
	require.Equal(t, before.Spans, after.Spans)

	set("a", "b", "x", "y")
	after, err = s.Stats(bg)
	require.NoError(t, err)
	require.Equal(t, before.Spans+2, after.Spans, "the common prefix is shared")
	now, err := active.Tip(bg)
	require.NoError(t, err)
	common, err := s.CommonPrefix(bg, was, now)
	require.NoError(t, err)
	require.EqualValues(t, 2, common)

	require.NoError(t, active.Undo(bg))
	require.Equal(t, []string{"a", "b", "c"}, said(t, c))
	set("a")
	set("a", "d") // only adds, which is no move
	require.NoError(t, active.Undo(bg))
	require.Equal(t, []string{"a", "b", "c"}, said(t, c))

	require.NoError(t, c.SetMessages(bg, nil))
	require.Empty(t, said(t, c))
	set("z")
}

func TestSetMessagesIsAllOrNothing(t *testing.T) {
	c := newConversation(t, "a", "b")
	err := c.SetMessages(bg, []conversation.Message{user("a"), user("x"), {Content: "no role"}})
	require.ErrorIs(t, err, lineage.ErrInvalid)
	require.Equal(t, []string{"a", "b"}, said(t, c))
}

// feature: branches/listing
func TestUpdatedAt(t *testing.T) {
	c := newConversation(t, "a")
	order := func() []string {
		branches, err := c.Branches(bg)
		require.NoError(t, err)
		return ids(branches)
	}
	fork(t, c, "One")
	fork(t, c, "Two")
	require.Equal(t, []string{"two", "one", "main"}, order())
	checkout(t, c, "main")
	require.Equal(t, []string{"two", "one", "main"}, order())
	say(t, c, "b")
	require.Equal(t, []string{"main", "two", "one"}, order())
	require.NoError(t, c.RenameBranch(bg, "one", "Uno"))
	require.Equal(t, []string{"one", "main", "two"}, order())
	b, err := c.Branch(bg, "one")
	require.NoError(t, err)
	require.True(t, b.UpdatedAt.After(b.CreatedAt))
}
