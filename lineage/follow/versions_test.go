package follow

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sessions are found where other versions of their agents keep them, and so are those of subagents.
func TestFoldersOfVersions(t *testing.T) {
	id, name := session(1)
	for path, text := range map[string]string{
		".config/claude/projects/-work/" + name: line(id, "a", "", "user", "one"),
		".copilot/session-state/" + id + ".jsonl": `{"type":"session.start","data":{"sessionId":"` + id + `","context":{"cwd":"/src/app"}},"id":"1","timestamp":"2025-11-01T10:00:00Z","parentId":null}` + "\n" +
			`{"type":"user.message","data":{"content":"one"},"id":"2","timestamp":"2025-11-01T10:00:01Z","parentId":"1"}` + "\n",
		".gemini/tmp/p/chats/of/" + id + ".jsonl": `{"sessionId":"` + id + `","projectHash":"p","startTime":"2026-05-01T10:00:00Z","lastUpdated":"2026-05-01T10:00:00Z","kind":"subagent"}` + "\n" +
			`{"id":"m","timestamp":"2026-05-01T10:00:01Z","type":"user","content":"one"}` + "\n",
		".copilot/history-session-state/session_" + id + "_1760259600000.json": "{\n  \"sessionId\": \"" + id + "\",\n  \"startTime\": \"2025-10-12T09:00:00.000Z\",\n" +
			"  \"chatMessages\": [\n    {\n      \"role\": \"user\",\n      \"content\": \"one\"\n    }\n  ],\n  \"timeline\": []\n}",
		".codex/sessions/rollout-2025-04-20-" + id + ".json": "{\n  \"session\": {\n    \"timestamp\": \"2025-04-20T10:00:00.000Z\",\n    \"id\": \"" + id + "\"\n  },\n" +
			"  \"items\": [\n    {\n      \"type\": \"message\",\n      \"role\": \"user\",\n      \"content\": \"one\"\n    }\n  ]\n}",
	} {
		t.Run(path, func(t *testing.T) {
			h, store := newHome(t), memory(t)
			h.write(t, h.path(path), text)
			once(t, store, h.options())
			requireExport(t, store, h, h.path(path), text)
			require.Equal(t, []string{"one"}, texts(t, store, id))
			listed, err := List(t.Context(), store, h.options())
			require.NoError(t, err)
			i := slices.IndexFunc(listed, func(l Listing) bool { return l.Files > 0 })
			require.GreaterOrEqual(t, i, 0)
			require.Empty(t, listed[i].Problems)
			require.Zero(t, listed[i].Unread)
		})
	}
	h, store := newHome(t), memory(t)
	h.write(t, h.path(".config/claude/projects/-work", name), line(id, "a", "", "user", "one"))
	o := h.options()
	o.Environment.Getenv = func(variable string) string {
		return map[string]string{"CLAUDE_CONFIG_DIR": h.path(".claude-work")}[variable]
	}
	require.Empty(t, of(once(t, store, o), Read), "another folder was named")
}

// A later version of Copilot CLI takes a session of the first versions over into an event, and removes its file.
func TestSessionsThatCopilotTookOver(t *testing.T) {
	id, _ := session(1)
	document := func(said int) string {
		messages := []json.RawMessage{[]byte(`{"role":"system","content":"Be brief."}`)}
		for n := range said {
			call := fmt.Appendf(nil, `{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"bash","arguments":"{}"}}]}`, n)
			messages = append(messages, fmt.Appendf(nil, `{"role":"user","content":"said %d"}`, n), call, fmt.Appendf(nil, `{"role":"tool","tool_call_id":"c%d","content":"done"}`, n))
		}
		text, err := json.MarshalIndent(map[string]any{"sessionId": id, "startTime": "2025-10-12T09:00:00.000Z", "chatMessages": messages, "timeline": []any{
			map[string]any{"id": "t", "timestamp": "2025-10-12T09:00:01.000Z", "type": "info", "text": "Welcome"},
		}}, "", "  ")
		require.NoError(t, err)
		return string(text)
	}
	event := func(n int, kind, parent string, data any) string {
		text, err := json.Marshal(map[string]any{"type": kind, "id": fmt.Sprint("e", n), "parentId": parent, "timestamp": fmt.Sprintf("2025-11-20T10:00:%02d.000Z", n), "data": data})
		require.NoError(t, err)
		return string(text) + "\n"
	}
	events := event(1, "session.start", "", map[string]any{"sessionId": id}) +
		event(2, "session.import_legacy", "e1", map[string]any{"legacySession": json.RawMessage(document(2)), "sourceFile": "f"}) +
		event(3, "session.resume", "e2", map[string]any{}) + event(4, "user.message", "e3", map[string]any{"content": "said later"})
	for name, before := range map[string]bool{"its file was read": true, "its file was not read": false} {
		t.Run(name, func(t *testing.T) {
			h, store := newHome(t), memory(t)
			file := h.path(".copilot", "history-session-state", "session_"+id+"_1760259600000.json")
			if before {
				for n := range 2 {
					h.write(t, file, document(n+1))
					once(t, store, h.options())
				}
				require.NoError(t, os.Remove(file))
			}
			path := h.path(".copilot", "session-state", id+".jsonl")
			h.write(t, path, events)
			once(t, store, h.options())
			requireExport(t, store, h, path, events)
			thread, err := store.FindThread(t.Context(), id)
			require.NoError(t, err)
			branches, err := thread.Branches(t.Context())
			require.NoError(t, err)
			require.Len(t, branches, 1)
			main, err := thread.Active(t.Context())
			require.NoError(t, err)
			entries, err := main.All(t.Context())
			require.NoError(t, err)
			var names []string
			for _, e := range entries {
				names = append(names, e.Name)
			}
			require.Equal(t, []string{"system", "user", "assistant", "bash", "user", "assistant", "bash", "user"}, names)
		})
	}
}

// The first Codex wrote its whole session at each save, with the time of the save, and at first with a new id and so to a new file.
func TestDocumentsOfCodex(t *testing.T) {
	h, store := newHome(t), memory(t)
	document := func(id string, said int) string {
		var items []json.RawMessage
		for n := range said {
			items = append(items, fmt.Appendf(nil, `{"type":"message","role":"user","content":"said %d"}`, n))
		}
		of := map[string]any{"session": map[string]any{"timestamp": fmt.Sprintf("2025-04-20T10:00:%02d.000Z", said), "id": id, "instructions": "Be brief."}, "items": items}
		text, err := json.MarshalIndent(of, "", "  ")
		require.NoError(t, err)
		return string(text)
	}
	var said []string
	written := make(map[string]string)
	save := func(id string, n int) {
		path := h.path(".codex", "sessions", "rollout-2025-04-20-"+id+".json")
		written[path] = document(id, n)
		h.write(t, path, written[path])
		once(t, store, h.options())
	}
	for n := range 5 {
		said = append(said, fmt.Sprint("said ", n))
		id, _ := session(1)
		save(id, n+1)
		require.Equal(t, said, texts(t, store, id))
		again, _ := session(n + 2)
		save(again, n+1)
		require.Equal(t, said, texts(t, store, again))
	}
	for path, want := range written {
		requireExport(t, store, h, path, want)
	}
	stats, err := store.View().Stats(t.Context())
	require.NoError(t, err)
	require.Positive(t, stats.Spans)
}

// Older versions of OpenClaw have sessions in the form of pi, beside files that have none. Their threads say so. A session of pi with equal ids
// of messages stays pi's. Each profile has a folder.
func TestOpenClaw(t *testing.T) {
	h, store := newHome(t), memory(t)
	raw := func(id string) string {
		return `{"type":"session","version":3,"id":"` + id + `","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" +
			`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"I am ` + id + `"}],"timestamp":1}}` + "\n"
	}
	const id, other = "01a22001-697f-772f-b4f5-ea342d6823c1", "01a22001-697f-772f-b4f5-ea342d6823c2"
	claw := h.path(".openclaw", "agents", "main", "sessions", id+".jsonl")
	h.write(t, claw, raw(id))
	h.write(t, h.path(".openclaw", "agents", "main", "sessions", id+".trajectory.jsonl"), `{"traceSchema":"openclaw-trajectory","type":"session.started","sessionId":"`+id+`"}`+"\n")
	h.write(t, h.path(".openclaw-work", "agents", "main", "sessions", other+".jsonl"), raw(other))
	h.write(t, h.path(".openclaw", "agents", "main", "sessions", "sessions.json"), `{"agent:main:main":{"sessionId":"claw"}}`)
	h.write(t, h.path(".pi", "agent", "sessions", "--w--", "2026_pi.jsonl"), raw("pi"))
	once(t, store, h.options())
	h.append(t, claw, `{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-01T00:00:02.000Z","message":{"role":"user","content":[{"type":"text","text":"more"}],"timestamp":1}}`+"\n")
	once(t, store, h.options())
	for id, agent := range map[string]string{id: "openclaw", other: "openclaw", "pi": "pi"} {
		thread, err := store.FindThread(t.Context(), id)
		require.NoError(t, err)
		info, err := thread.Info(t.Context())
		require.NoError(t, err)
		require.Contains(t, string(info.Metadata), `"agent":"`+agent+`"`)
	}
	requireKept(t, store, claw)
	all, err := List(t.Context(), store, h.options())
	require.NoError(t, err)
	i := slices.IndexFunc(all, func(l Listing) bool { return l.Agent.Name == "openclaw" && l.Files > 0 })
	require.EqualValues(t, 1, all[i].Files)
	require.NotEmpty(t, all[i].Tried)
	require.Equal(t, Followed, all[i].State)
}
