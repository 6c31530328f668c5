package chattest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// feature: state/message
// feature: storage/messages
// feature: storage/nothing
func testMessages(t *testing.T, s *store) {
	s.createChat("c")
	want := []chat.Message{
		{ID: "q", ChatID: "c", Name: "user", Type: chat.TypeMessage, Data: json.RawMessage(`{"id":"q"}`), CreatedAt: 1},
		{ID: "a", ChatID: "c", ParentID: "q", Name: "assistant", Data: json.RawMessage(`"text"`), CreatedAt: 1700000000001},
		{ID: "f", ChatID: "c", ParentID: "a", Name: "role", Type: "fragment", Data: json.RawMessage(`[1,2]`), CreatedAt: 5},
	}
	for _, m := range want {
		require.NoError(t, s.AddMessage(background, m))
	}
	for _, m := range want {
		got, err := s.Message(background, "c", m.ID)
		require.NoError(t, err)
		require.NotNil(t, got)
		s.requireMessage(m, *got)
	}
	for i, m := range collect(t, s.MessageChain(background, "c", "f")) {
		s.requireMessage(want[i], m)
	}
	for range s.MessageChain(background, "c", "f") {
		break
	}
	for i, m := range collect(t, s.Ancestors(background, "c", "f")) {
		s.requireMessage(want[2-i], m)
	}
	for range s.Ancestors(background, "c", "f") {
		break
	}
	require.Empty(t, collect(t, s.Ancestors(background, "c", "nothing")))
	require.Empty(t, collect(t, s.Messages(background, "c")), "adding moves no branch")
	require.NoError(t, s.UpdateBranchHead(background, "c", s.active("c").ID, "a"))
	require.Equal(t, []string{"q", "a"}, idsOf(collect(t, s.Messages(background, "c"))))

	none, err := s.Message(background, "c", "nothing")
	require.NoError(t, err)
	require.Nil(t, none)
	require.Empty(t, s.chain("c", "nothing"))
	has, err := s.HasChildren(background, "c", "nothing")
	require.NoError(t, err)
	require.False(t, has)

	undated := text("c", "now", "f", "user", "")
	undated.CreatedAt = 0
	require.NoError(t, s.AddMessage(background, undated))
	got, err := s.Message(background, "c", "now")
	require.NoError(t, err)
	require.NotZero(t, got.CreatedAt)
}

// testTrees adds messages in every place: at ends, in the middle, as further roots.
//
// feature: state/parent
// feature: storage/add
// feature: storage/children
func testTrees(t *testing.T, s *store) {
	s.createChat("c")
	parents := map[string]chat.Ref{}
	for _, m := range [][2]string{
		{"a", ""}, {"b", "a"}, {"c", "b"}, {"x", "a"}, {"y", "x"}, {"d", "c"}, {"z", "a"}, {"root", ""}, {"e", "d"},
		{"leaf", "root"}, {"y2", "x"}, {"b2", "b"}, {"b3", "b2"},
	} {
		s.add("c", m[0], chat.Ref(m[1]))
		parents[m[0]] = chat.Ref(m[1])
	}
	check := func() {
		for id, parent := range parents {
			var want []string
			for at := chat.Ref(id); at != ""; at = parents[string(at)] {
				want = append([]string{string(at)}, want...)
			}
			require.Equal(t, want, s.chain("c", id))
			m, err := s.Message(background, "c", id)
			require.NoError(t, err)
			require.Equal(t, parent, m.ParentID)
			expected := false
			for _, p := range parents {
				expected = expected || string(p) == id
			}
			has, err := s.HasChildren(background, "c", id)
			require.NoError(t, err)
			require.Equal(t, expected, has, "children of %s", id)
		}
		require.Len(t, s.graph("c").Nodes, len(parents))
	}
	check()
	if !s.config.Forgets {
		s.reopen()
		check()
	}
}

// feature: state/immutable
func testKnownMessages(t *testing.T, s *store) {
	s.createChat("c")
	s.createChat("other")
	s.add("c", "root", "")
	m := s.add("c", "m", "root")

	again := m
	again.CreatedAt += 1000
	again.Data = append(json.RawMessage(" "), m.Data...)
	require.NoError(t, s.AddMessage(background, again), "the same, said again")
	for name, change := range map[string]func(*chat.Message){
		"name":   func(m *chat.Message) { m.Name = "assistant" },
		"type":   func(m *chat.Message) { m.Type = "fragment" },
		"data":   func(m *chat.Message) { m.Data = json.RawMessage(`{}`) },
		"parent": func(m *chat.Message) { m.ParentID = "" },
	} {
		changed := m
		change(&changed)
		s.requireError(s.AddMessage(background, changed), chat.ErrExists, chat.SubjectMessage, "m")
		got, err := s.Message(background, "c", "m")
		require.NoError(t, err, name)
		s.requireMessage(m, *got)
	}
	elsewhere := text("other", "m", "", "user", "this is m")
	if Repeats(s.Store) {
		require.NoError(t, s.AddMessage(background, elsewhere))
		s.requireOwn("other", "m", "this is m")
	} else {
		s.requireError(s.AddMessage(background, elsewhere), chat.ErrOtherChat, chat.SubjectMessage, "m")
		require.Empty(t, s.graph("other").Nodes)
	}
	require.Len(t, s.graph("c").Nodes, 2)
	got, err := s.Message(background, "c", "m")
	require.NoError(t, err)
	s.requireMessage(m, *got)
}

// requireOwn requires that a chat has exactly one message, with the given id and text.
func (s *store) requireOwn(chatID, id, said string) {
	require.Len(s.t, s.graph(chatID).Nodes, 1)
	m, err := s.Message(background, chatID, id)
	require.NoError(s.t, err)
	require.Equal(s.t, chatID, m.ChatID)
	require.Contains(s.t, string(m.Data), said)
}

// feature: state/own-parent
func testRefusedMessages(t *testing.T, s *store) {
	s.createChat("c")
	s.createChat("other")
	s.add("other", "theirs", "")
	own := text("c", "m", "m", "user", "")
	s.requireError(s.AddMessage(background, own), chat.ErrOwnParent, chat.SubjectMessage, "m")
	s.requireError(s.AddMessage(background, text("c", "m", "nothing", "user", "")), chat.ErrNotFound, chat.SubjectMessage, "nothing")
	s.requireError(s.AddMessage(background, text("c", "m", "theirs", "user", "")), chat.ErrOtherChat, chat.SubjectMessage, "theirs")
	s.requireError(s.AddMessage(background, text("nobody", "m", "", "user", "")), chat.ErrNotFound, chat.SubjectChat, "nobody")
	for name, change := range map[string]func(*chat.Message){
		"no id":         func(m *chat.Message) { m.ID = "" },
		"a NUL":         func(m *chat.Message) { m.ID = "a\x00" },
		"no text":       func(m *chat.Message) { m.ID = "\xff" },
		"a huge id":     func(m *chat.Message) { m.ID = strings.Repeat("x", chat.MaxID+1) },
		"no name":       func(m *chat.Message) { m.Name = "" },
		"no data":       func(m *chat.Message) { m.Data = nil },
		"broken data":   func(m *chat.Message) { m.Data = json.RawMessage(`{"a":`) },
		"trailing data": func(m *chat.Message) { m.Data = json.RawMessage(`{} {}`) },
	} {
		m := text("c", "m", "", "user", "")
		change(&m)
		require.ErrorIs(t, s.AddMessage(background, m), chat.ErrInvalid, name)
	}
	require.Empty(t, s.graph("c").Nodes)
}

// testAnyJSON keeps JSON byte for byte, whatever its layout and size.
// feature: state/message
func testAnyJSON(t *testing.T, s *store) {
	s.createChat("c")
	parent := chat.Ref("")
	for i, data := range []string{
		`null`, `true`, `0`, `-1.50e+10`, `""`, `"a"`, `[]`, `{}`, " {\n\t\"b\" : 1 , \"a\":\t[ ] } ",
		`{"a":1,"b":{"c":"\u0041\/\ud83d\ude00"},"é":"日本語 👩‍👩‍👧 "}`, `{"n":123456789012345678901234567890.10}`,
		`"` + strings.Repeat("long ", 60_000) + `"`, strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		want := chat.Message{ID: fmt.Sprint("m", i), ChatID: "c", ParentID: parent, Name: "user", Type: chat.TypeMessage, Data: json.RawMessage(data), CreatedAt: 7}
		require.NoError(t, s.AddMessage(background, want))
		require.NoError(t, s.AddMessage(background, want))
		got, err := s.Message(background, "c", want.ID)
		require.NoError(t, err)
		s.requireMessage(want, *got)
		got.Data[0] = 'X' // the caller may change it
		parent = chat.Ref(want.ID)
		again, err := s.Message(background, "c", want.ID)
		require.NoError(t, err)
		s.requireMessage(want, *again)
	}
	require.Len(t, collect(t, s.MessageChain(background, "c", string(parent))), 13)
}

// oddIDs are ids that confuse code that builds paths, queries or documents from them.
func (s *store) oddIDs() []string {
	most := chat.MaxID
	if s.config.MaxID > 0 {
		most = s.config.MaxID
	}
	return []string{
		"../x", "/", ".", `'; DROP TABLE chats; --`, `"quoted"`, "`", `\`, "%", "_", "*", "a b", " ", "\t\n", "-", "null", "0",
		"é", "e\u0301", "👩‍👩‍👧", "日本語", "UPPER", "upper", "a/b/c", "a:b", "\u202e", "<mark>", strings.Repeat("x", min(most, 300)), strings.Repeat("y", most),
		"00000000-0000-4000-8000-000000000000", "ABCDEFAB-0000-4000-8000-00000000000A", "abcdefab-0000-4000-8000-00000000000a",
		"00000000-0000-4000-8000-000000000000/00000000-0000-4000-8000-000000000000/1",
	}
}

func testOddIDs(t *testing.T, s *store) {
	ids := s.oddIDs()
	for _, id := range ids {
		s.createChat(id)
		parent := s.add(id, id, "")
		s.add(id, "after "+id[:min(len(id), 100)], chat.Ref(parent.ID))
		s.createBranch(chat.Branch{ID: id, ChatID: id, Name: id, HeadMessageID: chat.Ref(id)})
		made, err := s.CreateCheckpoint(background, chat.Checkpoint{ID: id, ChatID: id, Name: id, MessageID: id})
		require.NoError(t, err)
		require.Equal(t, id, made.ID)
		require.NoError(t, s.SetActiveBranch(background, id, id))
	}
	check := func() {
		for _, id := range ids {
			c, err := s.Chat(background, id)
			require.NoError(t, err)
			require.NotNil(t, c, "%q", id)
			require.Equal(t, id, c.ID)
			require.Equal(t, []string{id}, s.chain(id, id))
			b, err := s.Branch(background, id, id)
			require.NoError(t, err)
			require.Equal(t, &chat.Branch{ID: id, ChatID: id, Name: id, HeadMessageID: chat.Ref(id), IsActive: true, CreatedAt: b.CreatedAt}, b)
			k, err := s.Checkpoint(background, id, id)
			require.NoError(t, err)
			require.Equal(t, &chat.Checkpoint{ID: id, ChatID: id, Name: id, MessageID: id, CreatedAt: k.CreatedAt}, k)
			require.Len(t, s.graph(id).Nodes, 2)
		}
	}
	check()
	if !s.config.Forgets {
		s.reopen()
		check()
	}
	require.Len(t, s.list(chat.ListOptions{}), len(ids))
}

// testLongChain reads a chain that exceeds common limits on depth and on parameters.
//
// feature: state/chain
func testLongChain(t *testing.T, s *store) {
	const step = 1_000
	count := cmp.Or(s.config.LongChain, 33_000)
	if testing.Short() {
		count = 2500
	}
	s.createChat("c")
	main, head := s.active("c"), chat.Ref("")
	for at := 0; at < count; at += step {
		messages := make([]chat.Message, min(step, count-at))
		for i := range messages {
			messages[i] = chat.Message{ID: fmt.Sprint("m", at+i), Name: "user", Data: json.RawMessage(`0`)}
		}
		next, err := s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, ExpectedHead: head, Messages: messages})
		require.NoError(t, err)
		head = next
	}
	n := 0
	for m, err := range s.Messages(background, "c") {
		require.NoError(t, err)
		if want := fmt.Sprint("m", n); m.ID != want {
			require.Equal(t, want, m.ID)
		}
		n++
	}
	require.Equal(t, count, n)
	for m, err := range s.Ancestors(background, "c", string(head)) {
		require.NoError(t, err)
		n--
		if want := fmt.Sprint("m", n); m.ID != want || (m.ParentID == "") != (n == 0) {
			require.Equal(t, want, m.ID)
			require.Equal(t, n == 0, m.ParentID == "")
		}
	}
	require.Zero(t, n)
	s.createBranch(chat.Branch{ChatID: "c", Name: "fork", HeadMessageID: chat.Ref(fmt.Sprint("m", count-step)), CreatedAt: main.CreatedAt + 1})
	infos := s.branches("c")
	require.Equal(t, count, infos[0].MessageCount)
	require.Equal(t, count-step+1, infos[1].MessageCount)
	require.Equal(t, count, collect(t, s.ListChats(background, chat.ListOptions{}))[0].MessageCount)

	deleted, err := s.DeleteChat(background, "c", chat.DeleteOptions{})
	require.NoError(t, err)
	require.True(t, deleted)
	s.requireGone("c", []string{"m0", fmt.Sprint("m", count-1)})
}

// testNotText looks up ids and names that are not valid text. Nothing has them, and the error is the same as for any
// other missing id.
func testNotText(t *testing.T, s *store) {
	s.createChat("c")
	s.add("c", "m", "")
	s.createChat("ab")
	s.createChat("a\uFFFDb")
	s.add("a\uFFFDb", "x\uFFFD", "")
	main := s.active("c")
	for _, bad := range []string{"a\x00b", "ab\x00", "\x00", "a\xffb", "x\xff", "\xc3", "c\x00", "m\x00", "\xed\xa0\x80"} {
		c, err := s.Chat(background, bad)
		require.NoError(t, err, "%q", bad)
		require.Nil(t, c, "%q", bad)
		m, err := s.Message(background, "c", bad)
		require.NoError(t, err, "%q", bad)
		require.Nil(t, m, "%q", bad)
		require.Empty(t, s.chain("c", bad))
		n, err := s.CountMessages(background, "c", bad)
		require.NoError(t, err, "%q", bad)
		require.Zero(t, n)
		has, err := s.HasChildren(background, "c", bad)
		require.NoError(t, err, "%q", bad)
		require.False(t, has)
		for _, chatID := range []string{"c", bad} {
			b, err := s.Branch(background, chatID, bad)
			require.NoError(t, err, "%q", bad)
			require.Nil(t, b)
			k, err := s.Checkpoint(background, chatID, bad)
			require.NoError(t, err, "%q", bad)
			require.Nil(t, k)
			require.NoError(t, s.DeleteCheckpoint(background, chatID, bad), "%q", bad)
		}
		b, err := s.ActiveBranch(background, bad)
		require.NoError(t, err, "%q", bad)
		require.Nil(t, b)
		require.Empty(t, s.branches(bad))
		names, err := s.BranchNames(background, bad, "", 10)
		require.NoError(t, err, "%q", bad)
		require.Empty(t, names)
		checkpoints, err := s.ListCheckpoints(background, bad)
		require.NoError(t, err, "%q", bad)
		require.Empty(t, checkpoints)
		require.Empty(t, s.graph(bad).Nodes)
		require.Empty(t, s.list(chat.ListOptions{UserID: bad}))
		deleted, err := s.DeleteChat(background, bad, chat.DeleteOptions{})
		require.NoError(t, err, "%q", bad)
		require.False(t, deleted)
		for _, err := range s.Messages(background, bad) {
			s.requireError(err, chat.ErrNotFound, chat.SubjectChat, bad)
		}
		if s.config.Search {
			found, err := s.SearchMessages(background, bad, "this", chat.SearchOptions{})
			require.NoError(t, err, "%q", bad)
			require.Empty(t, found)
			_, err = s.SearchMessages(background, "c", bad, chat.SearchOptions{})
			require.NoError(t, err, "%q", bad)
		}

		title := "t"
		_, err = s.UpdateChat(background, bad, chat.ChatUpdate{Title: &title})
		s.requireError(err, chat.ErrNotFound, chat.SubjectChat, bad)
		for what, err := range map[string]error{
			"activate":         s.SetActiveBranch(background, "c", bad),
			"activate in":      s.SetActiveBranch(background, bad, main.ID),
			"move":             s.UpdateBranchHead(background, "c", bad, "m"),
			"move to":          s.UpdateBranchHead(background, "c", main.ID, chat.Ref(bad)),
			"add to":           s.AddMessage(background, text(bad, "new", "", "user", "")),
			"add after":        s.AddMessage(background, text("c", "new", chat.Ref(bad), "user", "")),
			"branch in":        second(s.CreateBranch(background, chat.Branch{ChatID: bad, Name: "b"})),
			"branch at":        second(s.CreateBranch(background, chat.Branch{ChatID: "c", Name: "b", HeadMessageID: chat.Ref(bad)})),
			"checkpoint in":    second(s.CreateCheckpoint(background, chat.Checkpoint{ChatID: bad, Name: "k", MessageID: "m"})),
			"checkpoint at":    second(s.CreateCheckpoint(background, chat.Checkpoint{ChatID: "c", Name: "k", MessageID: bad})),
			"append to":        second(s.Append(background, chat.AppendRequest{ChatID: bad, BranchID: main.ID, Messages: says("new")})),
			"append to branch": second(s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: bad, Messages: says("new")})),
			"append after":     second(s.Append(background, chat.AppendRequest{ChatID: "c", BranchID: main.ID, ExpectedHead: chat.Ref(bad), Messages: says("new")})),
		} {
			require.ErrorIs(t, err, chat.ErrNotFound, "%s %q", what, bad)
		}
	}
	require.Len(t, s.graph("c").Nodes, 1)
	require.Equal(t, []string{"main"}, namesOf(s.branches("c")))
}

func second[T any](_ T, err error) error { return err }

func namesOf(branches []chat.BranchInfo) []string {
	names := make([]string, len(branches))
	for i, b := range branches {
		names[i] = b.Name
	}
	return names
}
