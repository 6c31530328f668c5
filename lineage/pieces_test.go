package lineage_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

func asJSON(role, json string) lineage.Item {
	return lineage.Item{Role: role, Type: content.TypeJSON, Body: []byte(json)}
}

// formsOf returns a user message in the formats of different programs.
func formsOf(text string) []lineage.Item {
	return []lineage.Item{
		lineage.User(text),
		asJSON("user", `"`+text+`"`),
		asJSON("user", `{"role":"user","content":"`+text+`"}`),
		asJSON("user", ` { "role": "user", "content": [ {"type":"text","text":"`+text+`"} ], "id": "a1" } `),
		asJSON("user", `{"id":"b2","role":"user","parts":[{"type":"text","text":"`+text+`"}]}`),
		asJSON("user", `{"type":"message","id":"c3","role":"user","content":[{"type":"input_text","text":"`+text+`"}]}`),
		{Role: "user", Type: content.TypeJSON, Reader: strings.NewReader(`{"content":"` + text + `"}`)},
	}
}

func bodyOf(t *testing.T, i lineage.Item) string {
	t.Helper()
	if i.Reader == nil {
		return string(i.Body)
	}
	b, err := io.ReadAll(i.Reader)
	require.NoError(t, err)
	i.Reader.(*strings.Reader).Reset(string(b))
	return string(b)
}

// A text is one block and has one digest in any JSON format and at any size, and each message is
// read back as it was given.
//
// feature: lineage/block
func TestOneTextInEveryForm(t *testing.T) {
	for _, size := range []int{1, 1 << 10, 8 << 10, 30 << 10, 60 << 10, 100 << 10} {
		s := newStore(t)
		text := strings.Repeat("x", size)
		id := content.Sum([]byte(text))
		var digest structure.Digest
		for i, item := range formsOf(text) {
			c := newContext(t, s)
			given := bodyOf(t, item)
			_, err := c.Extend(bg, item)
			require.NoError(t, err)
			got, err := c.Digest(bg)
			require.NoError(t, err)
			if i == 0 {
				digest = got
			}
			require.Equal(t, digest, got, "form %d", i)
			entries, err := c.All(bg)
			require.NoError(t, err)
			require.Len(t, entries, 1)
			require.Equal(t, id, entries[0].Content)
			original, err := s.Original(bg, entries[0])
			require.NoError(t, err)
			require.Equal(t, given, string(original), "form %d", i)
			if len(given) <= content.InlineLimit {
				require.Equal(t, given, string(entries[0].Body))
				require.Equal(t, int64(len(given)), entries[0].Size)
			}
			said, err := s.Text(bg, entries[0])
			require.NoError(t, err)
			require.Equal(t, text, said)
		}
		n := 0
		for e, err := range s.Where(bg, id) {
			require.NoError(t, err)
			require.Equal(t, id, e.Content)
			n++
		}
		require.Equal(t, len(formsOf("")), n)
	}
}

const agentTurn = `{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"},` +
	`{"type":"tool_use","id":"t1","name":"look","input":{"q":1}},{"type":"tool_result","tool_use_id":"t1","content":"found"}]}`

func TestPiecesOfAMessage(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	asset := lineage.Item{Kind: lineage.Asset, Filename: "a.bin", Body: []byte("bytes")}
	_, err := c.Extend(bg, lineage.Together(asJSON("assistant", agentTurn), asset, asJSON("tool", `{"content":"more"}`)))
	require.NoError(t, err)
	entries, err := c.All(bg)
	require.NoError(t, err)
	require.Len(t, entries, 3)
	e := entries[0]
	require.Equal(t, agentTurn, string(e.Body))
	require.Equal(t, content.TypeJSON, e.Type)
	require.Equal(t, content.Sum([]byte("hi")), e.Content)
	require.Equal(t, "(thinking) hm\nhi\n→ look({\"q\":1})\n← found", e.Excerpt())
	var kinds []structure.PieceKind
	for _, p := range e.Pieces {
		kinds = append(kinds, p.Kind)
		require.Equal(t, content.Sum(p.Body), p.Content)
	}
	require.Equal(t, []structure.PieceKind{lineage.ReasoningPiece, lineage.TextPiece, lineage.InputPiece, lineage.OutputPiece}, kinds)
	require.Equal(t, "look", e.Pieces[2].Tool)
	require.Equal(t, []int{0, 4, 5}, []int{e.Index, entries[1].Index, entries[2].Index})
	require.Equal(t, "bytes", string(entries[1].Body))
	require.Equal(t, "← more", entries[2].Excerpt())

	// Every piece is found in its message.
	for _, text := range []string{"hm", "hi", `{"q":1}`, "found"} {
		n := 0
		for at, err := range s.Where(bg, content.Sum([]byte(text))) {
			require.NoError(t, err)
			require.Equal(t, agentTurn, string(at.Body))
			n++
		}
		require.Equal(t, 1, n, text)
	}
}

// A message that is copied, sent or kept in a subset remains the same.
func TestPiecesStayTogether(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	say(t, c, "one")
	_, err := c.Extend(bg, asJSON("assistant", agentTurn), asJSON("user", "not JSON"))
	require.NoError(t, err)
	want, err := c.Digest(bg)
	require.NoError(t, err)
	bodies := func(c *lineage.Context) (all []string) {
		entries, err := c.All(bg)
		require.NoError(t, err)
		for _, e := range entries {
			all = append(all, string(e.Body))
		}
		return all
	}
	given := bodies(c)
	require.Equal(t, []string{"one", agentTurn, "not JSON"}, given)

	subset, err := c.Fork(bg, lineage.ForkOptions{Sees: &lineage.Filter{}})
	require.NoError(t, err)
	sent := newContext(t, s)
	entries, err := c.All(bg)
	require.NoError(t, err)
	for _, e := range entries {
		_, err := c.Send(bg, sent, e.Item())
		require.NoError(t, err)
	}
	merged := newContext(t, s)
	_, err = merged.Merge(bg, c)
	require.NoError(t, err)
	said, heard := newContext(t, s), newContext(t, s)
	_, _, err = addAndSend(s, said, heard, asJSON("assistant", agentTurn), lineage.Item{Role: "assistant"})
	require.NoError(t, err)
	require.Equal(t, []string{agentTurn}, bodies(heard))
	for _, copied := range []*lineage.Context{subset, sent, merged} {
		got, err := copied.Digest(bg)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, given, bodies(copied))
	}

	// An edit with a new body keeps nothing of the old JSON.
	edited, err := c.Edit(bg, entries[1].Span, lineage.Item{Body: []byte("plain")}, lineage.EditOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"one", "plain"}, bodies(edited))
	last, err := edited.Last(bg, 1)
	require.NoError(t, err)
	require.Equal(t, content.TypeText, last[0].Type)
	require.Empty(t, last[0].Pieces)
	require.Equal(t, entries[1].Content, last[0].Origin.ParentID)
	same, err := c.Edit(bg, entries[1].Span, asJSON("assistant", agentTurn), lineage.EditOptions{})
	require.NoError(t, err)
	last, err = same.Last(bg, 1)
	require.NoError(t, err)
	require.True(t, last[0].Origin.ParentID.IsZero(), "it was derived from nothing")
}

func TestErasePiece(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	_, err := c.Extend(bg, asJSON("assistant", agentTurn))
	require.NoError(t, err)
	require.NoError(t, s.Erase(bg, content.Sum([]byte("found"))))
	entries, err := c.All(bg)
	require.NoError(t, err)
	e := entries[0]
	require.True(t, e.Erased)
	require.Nil(t, e.Body)
	require.True(t, e.Pieces[3].Erased)
	require.Equal(t, "hi", string(e.Pieces[1].Body))
	require.Equal(t, "(thinking) hm\nhi\n→ look({\"q\":1})\n← [erased]", e.Excerpt())
	_, err = s.Original(bg, e)
	require.ErrorIs(t, err, lineage.ErrErased)
	_, err = s.Text(bg, e)
	require.ErrorIs(t, err, lineage.ErrErased)
	resolved, err := c.Resolve(bg, lineage.ResolveOptions{})
	require.NoError(t, err)
	require.Contains(t, resolved.Parts[0].Text(), "[erased]")
}

// JSON that cannot be split is a single piece.
//
//test:norace
func TestWholeMessages(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	large := append([]byte(`{"content":"`), bytes.Repeat([]byte("x"), 17<<20)...)
	large = append(large, `"}`...)
	for _, m := range []string{"not JSON", "\ufeff{}", `{"a":1} x`, string(large)} {
		spans, err := c.Extend(bg, lineage.Item{Role: "user", Type: content.TypeJSON, Reader: strings.NewReader(m)})
		require.NoError(t, err)
		entries, err := s.Span(bg, spans[0])
		require.NoError(t, err)
		require.Len(t, entries, 1)
		require.Equal(t, content.Sum([]byte(m)), entries[0].Content)
		require.Equal(t, content.TypeJSON, entries[0].Type)
		require.Empty(t, entries[0].Pieces)
		body, err := s.Original(bg, entries[0])
		require.NoError(t, err)
		require.True(t, m == string(body))
	}
}

// The names of the speaker and of the tool are distinguished, also if a call is all there is.
func TestNameOfCaller(t *testing.T) {
	c := newContext(t, newStore(t))
	call := `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{}"}}]}`
	for _, name := range []string{"", "ada", "look"} {
		item := asJSON("assistant", call)
		item.Name = name
		_, err := c.Extend(bg, item)
		require.NoError(t, err)
		entries, err := c.Last(bg, 1)
		require.NoError(t, err)
		e := entries[0]
		require.Equal(t, call, string(e.Body))
		require.Equal(t, "→ look({})", e.Excerpt(), name)
		if name == "" {
			name = "assistant"
		}
		require.Equal(t, name, e.Name)
	}
	_, err := c.Extend(bg, asJSON("tool", `{"role":"tool","name":"look","tool_call_id":"c","content":"found"}`))
	require.NoError(t, err)
	entries, err := c.Last(bg, 1)
	require.NoError(t, err)
	require.Equal(t, "look", entries[0].Name)
	require.Equal(t, "look", entries[0].Pieces[0].Tool)
}

// A text from a tool is output, also when it is sent on.
func TestPassedOn(t *testing.T) {
	s := newStore(t)
	tool, person, alone := newContext(t, s), newContext(t, s), newContext(t, s, "found")
	_, _, err := addAndSend(s, tool, person, lineage.ToolResult("", "look", "found"), lineage.Item{Role: "user"})
	require.NoError(t, err)
	want, err := alone.Digest(bg)
	require.NoError(t, err)
	got, err := person.Digest(bg)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Erasing a form removes the JSON, but not the texts.
func TestEraseForm(t *testing.T) {
	s := newStore(t)
	c := newContext(t, s)
	_, err := c.Extend(bg, asJSON("assistant", agentTurn))
	require.NoError(t, err)
	divided, ok := form.Split([]byte(agentTurn), "assistant")
	require.True(t, ok)
	require.NoError(t, s.Erase(bg, content.Sum(divided.Form)))
	entries, err := c.All(bg)
	require.NoError(t, err)
	require.True(t, entries[0].Erased)
	require.Nil(t, entries[0].Body)
	require.Contains(t, entries[0].Excerpt(), "found")
	_, err = s.Original(bg, entries[0])
	require.ErrorIs(t, err, lineage.ErrErased)
}
