package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
)

// feature: state/save
// feature: engine/resolve
// feature: engine/prompt
// feature: engine/pending-sent
func testConversation(t *testing.T, s *store) {
	c := s.open("c")
	require.Equal(t, "c", c.ChatID())
	require.Equal(t, chat.MainBranch, c.Branch())
	require.Empty(t, c.Head())
	c.set(engine.Role("You are helpful"), engine.Hint("Be brief"), user("q1"))

	r, err := c.Resolve(background, engine.ResolveOptions{Renderer: engine.XMLRenderer{}})
	require.NoError(t, err)
	require.Equal(t, "<role>You are helpful</role>\n<hint>Be brief</hint>", r.SystemPrompt)
	require.Equal(t, []string{"q1"}, c.says(), "what is pending is sent too")
	require.Zero(t, s.nodes("c"), "and not saved by that")

	require.Equal(t, chat.Ref("a1"), c.save(assistant("a1")))
	require.Equal(t, chat.Ref("a2"), c.save(user("q2"), assistant("a2")))
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, c.says())
	require.Equal(t, []string{"q1", "a1", "q2", "a2"}, s.on("c", "main"))

	r, err = c.Resolve(background, engine.ResolveOptions{Renderer: engine.TOONRenderer{}})
	require.NoError(t, err)
	require.Equal(t, "role: You are helpful\nhint: Be brief", r.SystemPrompt)
	require.Equal(t, "assistant", r.Messages[1].Role)
	require.Equal(t, "a1", r.Messages[1].ID)

	// Context is not stored.
	r, err = s.open("c").Resolve(background, engine.ResolveOptions{})
	require.NoError(t, err)
	require.Empty(t, r.SystemPrompt)
	require.Len(t, r.Messages, 4)

	empty, err := s.open("empty").Resolve(background, engine.ResolveOptions{})
	require.NoError(t, err)
	encoded, err := json.Marshal(empty)
	require.NoError(t, err)
	require.JSONEq(t, `{"systemPrompt":"","messages":[]}`, string(encoded))
}

// feature: engine/routing
// feature: storage/messages-only
func testRouting(t *testing.T, s *store) {
	c := s.open("c")
	c.set(engine.Role("r"), engine.User("u"), engine.F("data", engine.Hint("h")), engine.LastAssistantMessage("l"))
	c.set()
	c.set(engine.AssistantText("a", ""))
	names := func(fragments []engine.Fragment) string {
		var all []string
		for _, f := range fragments {
			all = append(all, f.Name)
		}
		return strings.Join(all, " ")
	}
	require.Equal(t, "role data", names(c.Fragments()))
	require.Equal(t, "user assistant assistant", names(c.Pending()))
	for _, f := range c.Pending() {
		require.Equal(t, !engine.IsLazy(f), f.ID != "")
	}
	c.Fragments()[0].Name = "changed"
	c.Pending()[0].Name = "changed"
	require.Equal(t, "role data", names(c.Fragments()), "the caller's copy")
	require.Equal(t, "user assistant assistant", names(c.Pending()))
}

// codec is a codec with fixed results.
type codec struct {
	decoded engine.UIMessage
	encoded string
	err     error
}

func (c codec) Decode() (engine.UIMessage, error) { return c.decoded, c.err }

func (c codec) Encode() (json.RawMessage, error) { return json.RawMessage(c.encoded), c.err }

func testRefusedFragments(t *testing.T, s *store) {
	c := s.open("c")
	for _, bad := range []engine.Fragment{
		{Name: "user", Type: engine.TypeMessage},
		engine.New("odd", make(chan int)),
		engine.New("", "no name"),
	} {
		require.Error(t, c.Set(engine.Hint("h"), engine.User("u"), bad, engine.User("v")))
	}
	require.ErrorIs(t, c.Set(engine.Fragment{Name: "user", Type: engine.TypeMessage}), engine.ErrNoCodec)
	broken := errors.New("broken")
	require.ErrorIs(t, c.Set(engine.Fragment{Name: "user", Type: engine.TypeMessage, Codec: codec{err: broken}}), broken)
	require.Empty(t, c.Fragments())
	require.Empty(t, c.Pending())

	// Messages that fail to encode stay pending, and nothing is saved.
	c.set(user("q1"), engine.Fragment{ID: "q2", Name: "user", Type: engine.TypeMessage, Codec: codec{err: broken}})
	_, err := c.Save(background)
	requireError(t, err, broken, chat.SubjectMessage, "q2")
	_, err = c.Resolve(background, engine.ResolveOptions{})
	requireError(t, err, broken, chat.SubjectMessage, "q2")
	require.Len(t, c.Pending(), 2)
	require.Zero(t, s.nodes("c"))

	d := s.open("d")
	d.set(user("q1"), engine.Fragment{ID: "q2", Name: "user", Type: engine.TypeMessage, Codec: codec{encoded: "no JSON"}})
	_, err = d.Save(background)
	requireError(t, err, chat.ErrInvalid, chat.SubjectMessage, "q2")
	require.Len(t, d.Pending(), 2)
	require.Zero(t, s.nodes("d"))
	require.Equal(t, []string{"main*"}, s.names("d"))
}

// feature: state/save
func testNothingToSave(t *testing.T, s *store) {
	c := s.open("c")
	c.set(engine.Hint("only context"))
	head, err := c.Save(background)
	require.NoError(t, err)
	require.Empty(t, head)
	c.save(user("q1"))
	head, err = c.Save(background)
	require.NoError(t, err)
	require.Empty(t, head, "nothing was pending")
	require.Equal(t, chat.Ref("q1"), c.Head())
}

// testRows checks the messages that a save stores.
func testRows(t *testing.T, s *store) {
	c := s.open("c")
	tool := engine.Assistant(engine.UIMessage{ID: "a1", Parts: []engine.Part{
		{Type: "tool-get", ToolCallID: "t1", State: "output-available", Input: json.RawMessage(`{"k":1}`), Output: json.RawMessage(`[2]`)},
	}})
	unnamed := engine.Fragment{Name: "user", Type: engine.TypeMessage, Codec: codec{encoded: `{"id":"own","role":"user","parts":[]}`}}
	anonymous := engine.Fragment{Name: "critic", Type: engine.TypeMessage, Codec: codec{encoded: `["my", "form"]`}}
	head := c.save(user("q1"), tool, unnamed, anonymous)
	var rows []chat.Message
	for m, err := range s.MessageChain(background, "c", string(head)) {
		require.NoError(t, err)
		rows = append(rows, m)
	}
	require.Len(t, rows, 4)
	require.NotZero(t, rows[0].CreatedAt)
	for i, want := range []chat.Message{
		{ID: "q1", Name: "user", Data: json.RawMessage(`{"id":"q1","role":"user","parts":[{"type":"text","text":"q1"}]}`)},
		{ID: "a1", ParentID: "q1", Name: "assistant", Data: json.RawMessage(
			`{"id":"a1","role":"assistant","parts":[{"type":"tool-get","toolCallId":"t1","state":"output-available","input":{"k":1},"output":[2]}]}`)},
		{ID: "own", ParentID: "a1", Name: "user", Data: json.RawMessage(`{"id":"own","role":"user","parts":[]}`)},
		{ID: string(head), ParentID: "own", Name: "critic", Data: json.RawMessage(`["my","form"]`)},
	} {
		want.ChatID, want.Type = "c", chat.TypeMessage
		require.True(t, want.Same(rows[i]), "%+v\n%+v", want, rows[i])
		require.Equal(t, rows[0].CreatedAt, rows[i].CreatedAt, "one save, one time")
	}
}

// feature: engine/foreign
// testForeignRows reads messages that other programs stored.
func testForeignRows(t *testing.T, s *store) {
	c := s.open("c")
	rows := []struct{ name, kind, data string }{
		{"user", chat.TypeMessage, `"plain"`}, {"user", chat.TypeMessage, `null`}, {"user", chat.TypeMessage, `{"role":"user","content":"older"}`},
		{"user", chat.TypeMessage, `[1, 2]`}, {"user", chat.TypeMessage, `{"id":"another","role":"user","parts":[{"type":"text","text":"x"}]}`},
		{"user", "note", `"of another type"`}, {"user", chat.TypeMessage, `{"parts":7}`},
		{"assistant", chat.TypeMessage, `{"content":null,"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{"tool", chat.TypeMessage, `{"role":"tool","tool_call_id":"t","content":"done"}`},
		{"user", chat.TypeMessage, `{"role":"user","parts":[{"type":"file","mediaType":"image/png","filename":"a.png","url":"lineage:content/1"}]}`},
	}
	for i, row := range rows {
		id, parent := string(rune('a'+i)), chat.Ref("")
		if i > 0 {
			parent = chat.Ref(rune('a' + i - 1))
		}
		require.NoError(t, s.AddMessage(background, chat.Message{
			ID: id, ChatID: "c", ParentID: parent, Name: row.name, Type: row.kind, Data: json.RawMessage(row.data),
		}))
	}
	main, err := s.Branch(background, "c", "main")
	require.NoError(t, err)
	require.NoError(t, s.UpdateBranchHead(background, "c", main.ID, chat.Ref(rune('a'+len(rows)-1))))
	c.set(engine.Role("r"))
	r, err := c.Resolve(background, engine.ResolveOptions{})
	require.NoError(t, err)
	var texts []string
	for _, m := range r.Messages {
		data, err := m.Encode()
		require.NoError(t, err)
		texts = append(texts, string(data))
	}
	want := []string{
		`{"id":"a","role":"user","parts":[{"type":"text","text":"plain"}]}`, `{"id":"c","role":"user","parts":[{"type":"text","text":"older"}]}`,
		`{"id":"e","role":"user","parts":[{"type":"text","text":"x"}]}`,
		`{"id":"h","role":"assistant","parts":[{"type":"tool-f","toolCallId":"t","state":"output-available","input":{},"output":"done"}]}`,
		`{"id":"j","role":"user","parts":[{"type":"text","text":"[image/png a.png]"}]}`,
	}
	require.Len(t, texts, len(want))
	for i := range want {
		require.JSONEq(t, want[i], texts[i], "under the ids that the rows have")
	}
	require.Len(t, r.Losses, 3, "%+v", r.Losses)
	for _, d := range message.Dialects() {
		out, err := r.Encode(d)
		require.NoError(t, err)
		require.NoError(t, messagetest.Check(d, out.Items), d)
	}
	out, err := r.Encode(message.Anthropic)
	require.NoError(t, err)
	require.Equal(t, []string{"<role>r</role>"}, out.System)
	require.Equal(t, 2, out.Losses[0].Message, "of the history")
	require.Len(t, out.Items, 3)
	require.Equal(t, `{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]}`, string(out.Items[1]))
	out, err = r.Encode(message.OpenAI)
	require.NoError(t, err)
	require.Equal(t, `{"role":"system","content":"<role>r</role>"}`, string(out.Items[0]))
	require.Equal(t, chat.Ref("q"), c.save(user("q")))
}

// feature: engine/initialise
// feature: storage/tenants
func testOpening(t *testing.T, s *store) {
	_, err := engine.Open(background, s.Store, engine.Options{UserID: "ada"})
	require.ErrorIs(t, err, chat.ErrInvalid)
	_, err = engine.Open(background, s.Store, engine.Options{ChatID: "c"})
	requireError(t, err, chat.ErrInvalid, chat.SubjectChat, "c")
	for _, metadata := range []string{`[]`, `null`, `"x"`, `{`, ``, `{}x`} {
		_, err = engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada", Metadata: json.RawMessage(metadata)})
		require.ErrorIs(t, err, chat.ErrInvalid, metadata)
	}
	c, err := s.Chat(background, "c")
	require.NoError(t, err)
	require.Nil(t, c, "a refused opening makes no chat")

	_, err = engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada", Title: "T", Metadata: json.RawMessage(`{"a":1,"b":{"c":2}}`)})
	require.NoError(t, err)
	_, err = engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "bob", Metadata: json.RawMessage(`{"a":2}`)})
	requireError(t, err, chat.ErrOtherUser, chat.SubjectChat, "c")
	e, err := engine.Open(background, s.Store, engine.Options{ChatID: "c", UserID: "ada", Title: "U", Metadata: json.RawMessage(`{"b":3,"d":null}`)})
	require.NoError(t, err)
	got, err := e.Chat(background)
	require.NoError(t, err)
	require.Equal(t, "T", got.Title)
	require.JSONEq(t, `{"a":1,"b":3,"d":null}`, string(got.Metadata))
}

// hidesActive is a store with chats that have no active branch, as other programs may leave them.
type hidesActive struct {
	chat.Store
	none map[string]bool
}

func (h *hidesActive) ActiveBranch(ctx context.Context, chatID string) (*chat.Branch, error) {
	if h.none[chatID] {
		return nil, nil
	}
	return h.Store.ActiveBranch(ctx, chatID)
}

func (h *hidesActive) SetActiveBranch(ctx context.Context, chatID, branchID string) error {
	delete(h.none, chatID)
	return h.Store.SetActiveBranch(ctx, chatID, branchID)
}

func testNoActiveBranch(t *testing.T, s *store) {
	s.open("c").save(user("q1"))
	hiding := &hidesActive{Store: s.Store, none: map[string]bool{"c": true}}
	c := (&store{Store: hiding, t: t}).open("c")
	require.Equal(t, "main", c.Branch())
	require.Empty(t, hiding.none, "main was made active")
	require.Equal(t, []string{"q1"}, c.says())
}

// feature: storage/reopen
func testReopening(t *testing.T, s *store) {
	c := s.open("c")
	c.save(user("q1"), assistant("a1"))
	c.rewind("q1")
	c.save(assistant("b1"))
	c.set(user("never saved"), engine.Hint("never kept"))

	again := s.open("c")
	require.Equal(t, "main-v2", again.Branch())
	require.Equal(t, chat.Ref("b1"), again.Head())
	require.Equal(t, []string{"q1", "b1"}, again.says())
	require.Equal(t, "main-v2-v2", again.rewind("q1").Name, "named after the branch that it was on")
	again.switchTo("main")

	require.Equal(t, "main", s.open("c").Branch())
	require.Equal(t, "main-v2", c.Branch(), "another engine's switch does not move this one")
	require.Equal(t, []string{"q1", "b1", "never saved"}, c.says())
}

func testUpdateChat(t *testing.T, s *store) {
	c := s.open("c")
	title := "T"
	got, err := c.UpdateChat(background, chat.ChatUpdate{Title: &title})
	require.NoError(t, err)
	require.Equal(t, "T", got.Title)
	require.Empty(t, got.Metadata)
	for _, step := range []struct{ more, want string }{
		{`{"a":1,"b":{"x":1}}`, `{"a":1,"b":{"x":1}}`},
		{`{"b":{"y":2},"c":12345678901234567890}`, `{"a":1,"b":{"y":2},"c":12345678901234567890}`},
		{`{}`, `{"a":1,"b":{"y":2},"c":12345678901234567890}`},
		{`{"a":null,"\u0063":"<&>","":[]}`, `{"a":null,"b":{"y":2},"c":"<&>","":[]}`},
	} {
		got, err = c.UpdateChat(background, chat.ChatUpdate{Metadata: json.RawMessage(step.more)})
		require.NoError(t, err)
		require.JSONEq(t, step.want, string(got.Metadata))
		require.Equal(t, "T", got.Title)
	}
	_, err = c.UpdateChat(background, chat.ChatUpdate{Metadata: json.RawMessage(`[1]`)})
	requireError(t, err, chat.ErrInvalid, chat.SubjectChat, "c")
	_, err = s.UpdateChat(background, "c", chat.ChatUpdate{Metadata: json.RawMessage(`"mine"`)})
	require.NoError(t, err)
	_, err = c.UpdateChat(background, chat.ChatUpdate{Metadata: json.RawMessage(`{"a":1}`)})
	requireError(t, err, chat.ErrInvalid, chat.SubjectChat, "c")
	got, err = c.Chat(background)
	require.NoError(t, err)
	require.JSONEq(t, `"mine"`, string(got.Metadata), "what cannot be merged is not lost")
}

func testDeletedChat(t *testing.T, s *store) {
	c := s.open("c")
	c.save(user("q1"))
	c.set(user("q2"))
	_, err := s.DeleteChat(background, "c", chat.DeleteOptions{})
	require.NoError(t, err)
	_, err = c.Save(background)
	requireError(t, err, chat.ErrNotFound, chat.SubjectChat, "c")
	_, err = c.Resolve(background, engine.ResolveOptions{})
	requireError(t, err, chat.ErrNotFound, chat.SubjectChat, "c")
	_, err = c.Chat(background)
	requireError(t, err, chat.ErrNotFound, chat.SubjectChat, "c")
	_, err = c.Aside(background)
	requireError(t, err, chat.ErrNotFound, chat.SubjectChat, "c")
	_, err = c.Rewind(background, "q1")
	requireError(t, err, chat.ErrNotFound, chat.SubjectMessage, "q1")
	title := "t"
	_, err = c.UpdateChat(background, chat.ChatUpdate{Title: &title, Metadata: json.RawMessage(`{}`)})
	requireError(t, err, chat.ErrNotFound, chat.SubjectChat, "c")
	require.Equal(t, []string{"q2"}, c.pendingTexts())

	// A chat created again with the same id is a different one.
	again := s.open("c")
	again.save(user("other"))
	_, err = c.Save(background)
	require.ErrorIs(t, err, chat.ErrNotFound)
	require.Equal(t, []string{"other"}, again.says())
}
