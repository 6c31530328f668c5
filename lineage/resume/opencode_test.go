package resume_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/resume"
)

// exported is a session as OpenCode exports and imports it.
type exported struct {
	Info     json.RawMessage
	Messages []struct {
		Info  json.RawMessage
		Parts []json.RawMessage
	}
}

// openCode makes a thread of a session that OpenCode exports, as the reader of its database does: without the ids that are columns.
func (h *home) openCode(export string) *lineage.Thread {
	var e exported
	require.NoError(h.t, json.Unmarshal([]byte(export), &e))
	thread, err := h.store.CreateThread(bg, lineage.ThreadOptions{Title: "Of OpenCode", Metadata: []byte(`{"agent":"opencode"}`)})
	require.NoError(h.t, err)
	for _, m := range e.Messages {
		data := struct {
			Info  map[string]json.RawMessage   `json:"info"`
			Parts []map[string]json.RawMessage `json:"parts"`
		}{}
		raw, err := json.Marshal(map[string]any{"info": m.Info, "parts": m.Parts})
		require.NoError(h.t, err)
		require.NoError(h.t, json.Unmarshal(raw, &data))
		id := text(data.Info["id"])
		for _, ids := range append(data.Parts, data.Info) {
			for _, key := range []string{"id", "sessionID", "messageID"} {
				delete(ids, key)
			}
		}
		body, err := json.Marshal(data)
		require.NoError(h.t, err)
		item := jsonItem(text(data.Info["role"]), string(body))
		item.SourceID = id
		h.extend(thread, item)
	}
	return thread
}

// madeForOpenCode writes a session for OpenCode, and returns what its file has.
func (h *home) madeForOpenCode(s *resume.Session) (e exported) {
	_, err := s.Write(bg)
	require.NoError(h.t, err)
	raw, err := os.ReadFile(s.File())
	require.NoError(h.t, err)
	require.NoError(h.t, json.Unmarshal(raw, &e))
	return e
}

func member(t *testing.T, raw json.RawMessage, path ...string) string {
	for _, key := range path {
		var all map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(raw, &all), "%s", raw)
		raw = all[key]
	}
	if s := text(raw); s != "" {
		return s
	}
	return string(raw)
}

var (
	openCodeID       = regexp.MustCompile(`^(ses|msg|prt)_[0-9a-f]{12}[0-9A-Za-z]{14}$`)
	openCodeQuestion = `{"info":{"id":"msg_q","role":"user","time":{"created":1000},"agent":"%s","model":{"providerID":"p","modelID":"m"},"tools":{"bash":true},"summary":{"diffs":[{"file":"EVIL"}]},"permission":"EVIL"},"parts":[{"type":"text","text":"Which?"}%s]}`
	openCodeReply    = `{"info":{"id":"%s","role":"assistant","time":{"created":2000,"completed":2500},"parentID":"msg_q","modelID":"m","providerID":"p","mode":"build","path":{"cwd":"/w","root":"/"},"cost":0.5,"tokens":{"input":1,"output":2,"reasoning":0,"cache":{"read":0,"write":0}},"finish":"stop"},"parts":[%s]}`
)

func session(messages ...string) string { return `{"messages":[` + strings.Join(messages, ",") + `]}` }

// A session of OpenCode continues with its own messages under new ids: the program leaves out those whose ids it has. Two threads may
// have equal ids of messages.
func TestOpenCodeContinuesItsOwn(t *testing.T) {
	h := newHome(t)
	call := `{"type":"tool","callID":"c1","tool":"read","state":{"status":"completed","input":{"filePath":"/a"},"output":"one","title":"a","metadata":{},"time":{"start":1,"end":2},"attachments":[{"type":"file","mime":"image/png","url":"data:image/png;base64,AA=="},{"type":"file","mime":"image/png","url":"file:///EVIL"}]}}`
	export := session(fmt.Sprintf(openCodeQuestion, "yolo", ""), fmt.Sprintf(openCodeReply, "msg_a", `{"type":"step-start","snapshot":"EVIL"},{"type":"reasoning","text":"Hm.","time":{"start":1}},`+call+`,{"type":"patch","hash":"EVIL","files":["/EVIL"]}`))
	threads := []*lineage.Thread{h.openCode(export), h.openCode(export)}
	seen := make(map[string]bool)
	for _, thread := range threads {
		for range 2 {
			s := h.plan("opencode", thread, h.tip(thread))
			require.Equal(t, 2, s.Own)
			require.Empty(t, s.Losses)
			require.Equal(t, [][]string{{"opencode", "import", s.File()}, {"opencode", "--session", s.ID}}, s.Commands)
			e := h.madeForOpenCode(s)
			raw, err := os.ReadFile(s.File())
			require.NoError(t, err)
			require.NotContains(t, string(raw), "EVIL")
			require.NotContains(t, string(raw), "yolo")
			require.Contains(t, string(raw), `"text":"Hm."`)
			require.Equal(t, "Of OpenCode", member(t, e.Info, "title"))
			require.Equal(t, s.ID, member(t, e.Info, "id"))
			require.Equal(t, h.work, member(t, e.Info, "directory"))
			require.Len(t, e.Messages, 2)
			question, answer := e.Messages[0], e.Messages[1]
			require.Equal(t, "build", member(t, question.Info, "agent"))
			require.Equal(t, "1000", member(t, question.Info, "time", "created"))
			require.Equal(t, "2000", member(t, answer.Info, "time", "created"))
			require.Equal(t, member(t, question.Info, "id"), member(t, answer.Info, "parentID"))
			require.Equal(t, "0.5", member(t, answer.Info, "cost"))
			require.Len(t, answer.Parts, 3)
			last := ""
			for _, m := range e.Messages {
				id := member(t, m.Info, "id")
				require.Regexp(t, openCodeID, id)
				require.False(t, seen[id])
				require.Greater(t, id, last)
				seen[id], last = true, id
				lastPart := ""
				for _, p := range m.Parts {
					part := member(t, p, "id")
					require.Regexp(t, openCodeID, part)
					require.False(t, seen[part])
					require.Greater(t, part, lastPart)
					seen[part], lastPart = true, part
					require.Equal(t, id, member(t, p, "messageID"))
					require.Equal(t, s.ID, member(t, p, "sessionID"))
				}
			}
			info, err := os.Stat(s.File())
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
			require.Equal(t, filepath.Join(h.dir, ".local", "state", "lineage", "resume"), filepath.Dir(s.File()))
		}
	}
	require.NoDirExists(t, filepath.Join(h.dir, ".local", "share", "opencode"), "something of the agent's was written")
}

// A message that the program's import would not take is translated, and what follows it: a wrong one ends the import in the middle.
func TestOpenCodeOddMessages(t *testing.T) {
	for name, c := range map[string]struct {
		parts string
		own   int
	}{
		"a part without its text":    {`{"type":"text"}`, 1},
		"a kind that is not known":   {`{"type":"unheard-of","text":"x"}`, 1},
		"a key twice":                {`{"type":"text","text":"a","text":"b"}`, 1},
		"a number for a text":        {`{"type":"text","text":7}`, 1},
		"a call without its state":   {`{"type":"tool","callID":"c","tool":"t"}`, 1},
		"a call in an unknown state": {`{"type":"tool","callID":"c","tool":"t","state":{"status":"odd","input":{}}}`, 1},
		"null for what may be left":  {`{"type":"text","text":"a","metadata":null}`, 1},
		"a time before all times":    {`{"type":"text","text":"a","time":{"start":-1}}`, 1},
		"a task that would be run":   {`{"type":"subtask","prompt":"EVIL","agent":"EVIL","description":"EVIL"}`, 2},
		"a file of this machine":     {`{"type":"file","mime":"image/png","url":"file:///EVIL"}`, 2},
		"a text file that was read":  {`{"type":"file","mime":"text/plain","url":"file:///EVIL"}`, 2},
		"a file with its data":       {`{"type":"file","mime":"image/png","url":"data:image/png;base64,AA=="}`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			thread := h.openCode(session(fmt.Sprintf(openCodeQuestion, "build", "")))
			odd := jsonItem("user", fmt.Sprintf(openCodeQuestion, "build", ","+c.parts))
			odd.SourceID = "msg_r"
			h.extend(thread, odd)
			s := h.plan("opencode", thread, h.tip(thread))
			require.Equal(t, c.own, s.Own)
			e := h.madeForOpenCode(s)
			require.GreaterOrEqual(t, len(e.Messages), 2)
			if c.own == 2 {
				raw, err := os.ReadFile(s.File())
				require.NoError(t, err)
				require.NotContains(t, string(raw), "EVIL")
			}
			for _, m := range e.Messages {
				for _, p := range m.Parts {
					require.Contains(t, []string{"text", "file", "tool"}, member(t, p, "type"))
				}
			}
		})
	}
}

// Messages of another program are translated: results are in their calls, and reasoning is lost and said so.
func TestOpenCodeContinuesOthers(t *testing.T) {
	h := newHome(t)
	h.write0(".config/opencode/opencode.json", `{"model":"demo/some/model","default_agent":"careful"}`)
	thread := h.library()
	h.extend(thread,
		jsonItem("assistant", `{"role":"assistant","content":[{"type":"thinking","thinking":"SECRET","signature":"s"},{"type":"text","text":"I write."},{"type":"tool_use","id":"b","name":"write","input":{"n":1}},{"type":"tool_use","id":"c","name":"write","input":{"n":2}}]}`),
		jsonItem("user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"denied"},{"type":"text","text":"Stop."}]}`))
	s := h.plan("opencode", thread, h.tip(thread))
	require.Zero(t, s.Own)
	e := h.madeForOpenCode(s)
	var lines []string
	for _, m := range e.Messages {
		line := member(t, m.Info, "role")
		for _, p := range m.Parts {
			line += " " + member(t, p, "type")
			if member(t, p, "type") == "tool" {
				line += ":" + member(t, p, "state", "status")
			}
		}
		lines = append(lines, line)
	}
	require.Equal(t, []string{"user text", "assistant text tool:completed", "assistant text", "user text", "assistant text tool:error text", "user text"}, lines)
	require.Equal(t, "one\ntwo", member(t, e.Messages[1].Parts[1], "state", "output"))
	require.Equal(t, "demo", member(t, e.Messages[0].Info, "model", "providerID"))
	require.Equal(t, "some/model", member(t, e.Messages[0].Info, "model", "modelID"))
	require.Equal(t, "careful", member(t, e.Messages[0].Info, "agent"))
	raw, err := os.ReadFile(s.File())
	require.NoError(t, err)
	require.NotContains(t, string(raw), "SECRET")
	var reasons []string
	for _, l := range s.Losses {
		reasons = append(reasons, l.Reason)
	}
	require.Contains(t, strings.Join(reasons, "\n"), "thinking")
}

// Whatever the times of messages are, they are in their order, none is after the session's, and ids rise.
func TestOpenCodeTimes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := newHome(t)
		var messages []string
		for i := range rapid.IntRange(1, 6).Draw(r, "n") {
			at := rapid.SampledFrom([]int64{0, 1, 1000, 2000, time.Now().UnixMilli(), 1 << 52}).Draw(r, "at")
			if rapid.Bool().Draw(r, "answer") {
				messages = append(messages, strings.ReplaceAll(fmt.Sprintf(openCodeReply, fmt.Sprint("msg_", i), `{"type":"text","text":"x"}`), "2000", fmt.Sprint(at)))
			} else {
				messages = append(messages, strings.NewReplacer("msg_q", fmt.Sprint("msg_", i), "1000", fmt.Sprint(at)).Replace(fmt.Sprintf(openCodeQuestion, "build", "")))
			}
		}
		thread := h.openCode(session(messages...))
		s := h.plan("opencode", thread, h.tip(thread))
		require.Equal(r, len(messages), s.Own)
		last, lastID := int64(0), ""
		for _, m := range h.madeForOpenCode(s).Messages {
			var info struct {
				ID   string
				Time struct{ Created int64 }
			}
			require.NoError(r, json.Unmarshal(m.Info, &info))
			require.GreaterOrEqual(r, info.Time.Created, last)
			require.LessOrEqual(r, info.Time.Created, time.Now().UnixMilli())
			require.Greater(r, info.ID, lastID)
			last, lastID = info.Time.Created, info.ID
		}
	})
}

// A session whose messages were erased after it was planned is not written in part.
func TestOpenCodeErasedMeanwhile(t *testing.T) {
	h := newHome(t)
	thread := h.openCode(session(fmt.Sprintf(openCodeQuestion, "build", ""), fmt.Sprintf(openCodeReply, "msg_a", `{"type":"text","text":"gone"}`)))
	s := h.plan("opencode", thread, h.tip(thread))
	for e, err := range h.store.History(bg, h.tip(thread), lineage.Window{From: 2}) {
		require.NoError(t, err)
		for _, id := range e.Contents() {
			require.NoError(t, h.store.Erase(bg, id))
		}
	}
	_, err := s.Write(bg)
	require.ErrorContains(t, err, "changed meanwhile")
	require.NoFileExists(t, s.File())
	after := h.plan("opencode", thread, h.tip(thread))
	require.Equal(t, 1, after.Own)
	require.NotEmpty(t, after.Losses)
}

// The file for the import is valid JSON whatever its history is.
func TestOpenCodeFileIsJSON(t *testing.T) {
	h := newHome(t)
	thread := h.library()
	for _, tip := range h.spans(h.tip(thread)) {
		s := h.plan("opencode", thread, tip)
		var b bytes.Buffer
		size, err := s.Content(bg, &b)
		require.NoError(t, err)
		require.True(t, json.Valid(b.Bytes()))
		require.EqualValues(t, b.Len(), size.Bytes)
		require.EqualValues(t, bytes.Count(b.Bytes(), []byte("\n")), size.Lines)
	}
}
