package lineage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// Large texts are read whole by those who ask for all, and from their start for a line.
func TestTranscriptOfLargeTexts(t *testing.T) {
	s := newStore(t)
	_, c := newThread(t, s)
	long := strings.Repeat("é", 100_000)
	_, err := c.Extend(bg,
		lineage.User(long),
		lineage.Item{Role: "assistant", Type: "application/json", Body: []byte(`{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"cat x"}}]}`)},
		lineage.Item{Role: "user", Type: "application/json", Body: []byte(`{"content":[{"type":"tool_result","tool_use_id":"a","content":"` + long + `"}]}`)},
	)
	require.NoError(t, err)
	tip, err := c.Tip(bg)
	require.NoError(t, err)
	var items []*transcript.Item
	for i, err := range s.Transcript(bg, tip, lineage.Window{}, transcript.Options{}) {
		require.NoError(t, err)
		items = append(items, i)
	}
	require.Len(t, items, 2)
	require.Equal(t, long, items[0].Text)
	require.Zero(t, items[0].Left)
	require.Equal(t, long, items[1].Call.Results[0].Text)

	var lines []string
	for e, err := range s.History(bg, tip, lineage.Window{}) {
		require.NoError(t, err)
		m, err := s.Transcribe(bg, e, 1000)
		require.NoError(t, err)
		if e.Position == 1 {
			start := transcript.Items(m, transcript.Options{})[0]
			require.Equal(t, len(long), len(start.Text)+start.Left)
		}
		require.Less(t, len(m.Body), 5000)
		_, line := transcript.Line(m)
		lines = append(lines, line)
	}
	require.True(t, strings.HasPrefix(lines[0], "ééé"))
	require.Equal(t, "→ Bash cat x", lines[1])
	require.True(t, strings.HasPrefix(lines[2], "← ééé"))
	require.NotContains(t, strings.Join(lines, ""), "\ufffd")
}

// What was erased is a note in a transcript; the rest of the message stays.
func TestTranscriptOfErasedTexts(t *testing.T) {
	s := newStore(t)
	_, c := newThread(t, s)
	_, err := c.Extend(bg,
		lineage.User("a secret that is long enough to be a text of its own"),
		lineage.Item{Role: "assistant", Type: "application/json", Body: []byte(`{"role":"assistant","content":[{"type":"text","text":"this stays as it is, whatever happens"},{"type":"tool_use","id":"a","name":"Bash","input":{"command":"echo another secret, which is long enough"}}]}`)},
	)
	require.NoError(t, err)
	all, err := c.All(bg)
	require.NoError(t, err)
	require.NoError(t, s.Erase(bg, all[0].Content))
	for _, p := range all[1].Pieces {
		if p.Kind == lineage.InputPiece {
			require.NoError(t, s.Erase(bg, p.Content))
		}
	}
	tip, err := c.Tip(bg)
	require.NoError(t, err)
	var lines []string
	for i, err := range s.Transcript(bg, tip, lineage.Window{}, transcript.Options{}) {
		require.NoError(t, err)
		lines = append(lines, i.Line())
	}
	require.Equal(t, []string{"(erased)", "this stays as it is, whatever happens", "→ Bash [erased]"}, lines)
}

// The type of a call or result in a session of Codex is no name of its speaker; a tool's name is, whatever it is.
func TestTypesAreNoSpeakers(t *testing.T) {
	s := newStore(t)
	_, c := newThread(t, s)
	var items []lineage.Item
	for _, name := range []string{"function_call", "function_call_output", "get_output", "Ada"} {
		items = append(items, lineage.Item{Role: "assistant", Name: name, Body: []byte("x")})
	}
	_, err := c.Extend(bg, items...)
	require.NoError(t, err)
	entries, err := c.All(bg)
	require.NoError(t, err)
	var speakers []string
	for _, e := range entries {
		m, err := s.Transcribe(bg, e, 1000)
		require.NoError(t, err)
		speaker, _ := transcript.Line(m)
		speakers = append(speakers, speaker)
	}
	require.Equal(t, []string{"assistant", "assistant", "assistant get_output", "assistant Ada"}, speakers)
}

// Only messages of the thread itself name it: without an id there are none.
func TestTitleOfAnEmptyThread(t *testing.T) {
	s := newStore(t)
	_, c := newThread(t, s)
	_, err := c.Extend(bg, lineage.User("of another thread"))
	require.NoError(t, err)
	_, empty := newThread(t, s)
	for _, info := range []lineage.ThreadInfo{{Active: empty.ID()}, {}} {
		title, err := s.ShownTitle(bg, info)
		require.NoError(t, err)
		require.Empty(t, title)
	}
}
