package conversation_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/conversation"
)

func fields(pairs ...string) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return all
}

var messages = []conversation.Message{
	{Role: "user", Content: "Hello"},
	{Role: "assistant"},
	{Role: "user", Content: "not \xff text"},
	{Role: "user", Content: `{"role":"user","content":"looks like a message"}`},
	{Role: "assistant", Content: "a <b> & \u2028 \x00", Fields: fields("tool_calls", `[ {"id" : "1", "n":1.50e0} ]`)},
	{Role: "assistant", Fields: fields("content", `null`, "tool_calls", `[]`)},
	{Role: "user", Fields: fields("content", `[{"type":"text","text":"hi"}]`)},
	{Role: "tool", Content: "42", Fields: fields("tool_call_id", `"1"`, "", `0`, `a"b`, `"\ud800"`)},
	{Role: "user", Content: strings.Repeat("large ", content.InlineLimit)},
	{Role: "user", Content: strings.Repeat("large ", content.InlineLimit), Fields: fields("name", `"x"`)},
}

func TestMessagesReadBackEqual(t *testing.T) {
	s := storetest.NewTicking(t)
	c := open(t, s)
	for _, m := range messages {
		require.NoError(t, c.AddMessage(bg, m))
	}
	read, err := c.Messages(bg)
	require.NoError(t, err)
	require.Equal(t, messages, read)

	// They are recognised: setting them changes nothing.
	before, err := s.Stats(bg)
	require.NoError(t, err)
	require.NoError(t, c.SetMessages(bg, messages))
	after, err := s.Stats(bg)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// The bytes that a message is stored as decide its content id: they must not change.
func TestStoredForm(t *testing.T) {
	c := newConversation(t)
	for _, row := range []struct {
		m         conversation.Message
		mediaType string
		body      string
	}{
		{user("Hello"), content.TypeText, "Hello"},
		{
			conversation.Message{Role: "assistant", Content: "<é\n", Fields: fields("z", ` [1, 2] `, "a", `{}`)},
			content.TypeJSON, `{"role":"assistant","content":"<é\n","a":{},"z":[1, 2]}`,
		},
		{
			conversation.Message{Role: "assistant", Fields: fields("content", `null`, "a", `1`)},
			content.TypeJSON, `{"role":"assistant","a":1,"content":null}`,
		},
	} {
		require.NoError(t, c.AddMessage(bg, row.m))
		active, err := c.Thread().Active(bg)
		require.NoError(t, err)
		last, err := active.Last(bg, 1)
		require.NoError(t, err)
		require.Equal(t, row.m.Role, last[0].Role)
		require.Equal(t, row.mediaType, last[0].Type)
		require.Equal(t, row.body, string(last[0].Body))
	}
}

// The same bytes as text and as a message with fields stay what they are.
func TestSameBytesTwoMessages(t *testing.T) {
	structured := conversation.Message{Role: "user", Content: "x", Fields: fields("a", `1`)}
	text := user(`{"role":"user","content":"x","a":1}`)
	for _, both := range [][]conversation.Message{{structured, text}, {text, structured}} {
		c := newConversation(t)
		for _, m := range both {
			require.NoError(t, c.AddMessage(bg, m))
		}
		read, err := c.Messages(bg)
		require.NoError(t, err)
		require.Equal(t, both, read)
	}
}

func TestMessageRefusals(t *testing.T) {
	c := newConversation(t)
	for name, m := range map[string]conversation.Message{
		"no role":        {Content: "x"},
		"binary role":    {Role: "\xff"},
		"erased":         {Role: "user", Erased: true},
		"role field":     {Role: "user", Fields: fields("role", `"user"`)},
		"content twice":  {Role: "user", Content: "x", Fields: fields("content", `[]`)},
		"string content": {Role: "user", Fields: fields("content", `"x"`)},
		"not JSON":       {Role: "user", Fields: fields("a", `{`)},
		"empty value":    {Role: "user", Fields: fields("a", ``)},
		"empty content":  {Role: "user", Fields: fields("content", ` `)},
		"two values":     {Role: "user", Fields: fields("a", `1,"b":2`)},
		"binary key":     {Role: "user", Fields: fields("\xff", `1`)},
		"binary content": {Role: "user", Content: "\xff", Fields: fields("a", `1`)},
	} {
		require.ErrorIs(t, c.AddMessage(bg, m), lineage.ErrInvalid, name)
	}
	require.Empty(t, said(t, c))
}

func TestErasedMessage(t *testing.T) {
	s := storetest.NewTicking(t)
	c := open(t, s)
	say(t, c, "secret", "b")
	require.NoError(t, s.Erase(bg, content.Sum([]byte("secret"))))
	read, err := c.Messages(bg)
	require.NoError(t, err)
	require.Equal(t, []conversation.Message{{Role: "user", Erased: true}, user("b")}, read)
	require.NoError(t, c.SetMessages(bg, append(read, user("c"))), "what was read can be set")
	require.Equal(t, []string{"", "b", "c"}, said(t, c))
}

// What others say in the thread reads as well as it can.
func TestMessagesOfOthers(t *testing.T) {
	c := newConversation(t)
	active, err := c.Thread().Active(bg)
	require.NoError(t, err)
	_, err = active.Extend(bg, lineage.Together(lineage.User("look at these"),
		lineage.Item{Kind: lineage.Asset, Filename: "a.png", Body: []byte{1}}, lineage.User("please")))
	require.NoError(t, err)
	_, err = active.Extend(bg, lineage.Item{Role: "tool", Type: content.TypeJSON, Body: []byte(`{"answer":42}`)})
	require.NoError(t, err)
	require.Equal(t, []string{"look at these", "please", `{"answer":42}`}, said(t, c))

	// A span is kept whole or not at all.
	require.NoError(t, c.SetMessages(bg, []conversation.Message{user("look at these"), user("no")}))
	require.Equal(t, []string{"look at these", "no"}, said(t, c))
	require.NoError(t, active.Undo(bg))
	require.NoError(t, c.SetMessages(bg, []conversation.Message{user("look at these"), user("please")}))
	entries, err := active.All(bg)
	require.NoError(t, err)
	require.Len(t, entries, 3)
}

// What a caller does to a message it passed or got changes nothing that is stored.
//
// feature: branches/copies
func TestNoSharedMemory(t *testing.T) {
	c := newConversation(t)
	m := conversation.Message{Role: "user", Content: "x", Fields: fields("a", `"1"`)}
	require.NoError(t, c.AddMessage(bg, m))
	m.Fields["a"][1] = '2'
	fork(t, c, "Fork")
	read, err := c.Messages(bg)
	require.NoError(t, err)
	require.JSONEq(t, `"1"`, string(read[0].Fields["a"]))
	read[0].Fields["a"][1] = '3'
	read[0].Fields["b"] = nil
	for _, branch := range []string{"main", "fork"} {
		again, err := c.MessagesOf(bg, branch)
		require.NoError(t, err)
		require.Equal(t, fields("a", `"1"`), again[0].Fields)
	}
}

// Messages of other formats, such as those of imported archives, are read as what they say.
func TestMessagesOfOtherFormats(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{SourceID: "session"})
	require.NoError(t, err)
	active, err := thread.Active(bg)
	require.NoError(t, err)
	var items []lineage.Item
	for _, m := range []struct{ role, body string }{
		{"user", `{"id":"m","author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}`},
		{"assistant", `{"uuid":"m","text":"hello","content":[{"type":"text","text":"hello"}],"sender":"assistant"}`},
		{"user", `{"message_id":"m","text":"a line\n","role":"prompter"}`}, {"assistant", `{"from":"gpt","value":""}`}, {"user", `"quoted"`},
		{"user", `{"unknown":["shape"]}`},
	} {
		items = append(items, lineage.Item{Role: m.role, Type: "application/json", Body: []byte(m.body)})
	}
	_, err = active.Extend(bg, items...)
	require.NoError(t, err)
	require.Equal(t, []string{"hi", "hello", "a line\n", "", "quoted", `{"unknown":["shape"]}`}, said(t, open(t, s)))
}
