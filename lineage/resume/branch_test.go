package resume_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/resume"
	"github.com/lineage-store/lineage/lineage/usage"
)

// branch returns the end of the branch that a session became.
func (h *home) branch(thread *lineage.Thread, s *resume.Session) lineage.SpanRef {
	h.t.Helper()
	branches, err := thread.Branches(bg)
	require.NoError(h.t, err)
	for _, b := range branches {
		if b.Name == s.Agent.Name+"-"+s.ID[len(s.ID)-12:] {
			c, err := h.store.Context(bg, b.Context)
			require.NoError(h.t, err)
			tip, err := c.Tip(bg)
			require.NoError(h.t, err)
			return tip
		}
	}
	require.Fail(h.t, "no branch", "%s: %v", s.ID, branches)
	return lineage.SpanRef{}
}

// says adds a message to a session file as its agent does, after a line.
func (h *home) says(s *resume.Session, after []byte, role, said string) []byte {
	h.t.Helper()
	var line string
	switch s.Agent.Name {
	case "codex":
		kind := map[string]string{"user": "input_text", "assistant": "output_text"}[role]
		line = fmt.Sprintf(`{"timestamp":"2026-11-30T00:00:00.000Z","type":"response_item","payload":{"type":"message","role":%q,"content":[{"type":%q,"text":%q}]}}`, role, kind, said)
	case "pi":
		line = fmt.Sprintf(`{"type":"message","id":%q,"parentId":%q,"timestamp":"2026-11-30T00:00:00.000Z","message":{"role":%q,"content":[{"type":"text","text":%q}],"timestamp":1}}`, said[:8], member(h.t, after, "id"), role, said)
	case "claude-code":
		line = fmt.Sprintf(`{"parentUuid":%q,"isSidechain":false,"sessionId":%q,"type":%q,"message":{"role":%q,"content":[{"type":"text","text":%q}]},"uuid":%q,"timestamp":"2026-11-30T00:00:00.000Z"}`, member(h.t, after, "uuid"), s.ID, role, role, said, "new-"+said)
	case "qwen":
		line = fmt.Sprintf(`{"uuid":%q,"parentUuid":%q,"sessionId":%q,"timestamp":"2026-11-30T00:00:00.000Z","type":%q,"message":{"role":%q,"parts":[{"text":%q}]}}`, "new-"+said, member(h.t, after, "uuid"), s.ID, role, map[string]string{"user": "user", "assistant": "model"}[role], said)
	}
	f, err := os.OpenFile(s.File(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(h.t, err)
	_, err = f.WriteString(line + "\n")
	require.NoError(h.t, err)
	require.NoError(h.t, f.Close())
	return []byte(line)
}

// A session that was made for another agent, at any position and with its own lines or without, becomes a branch of the thread: also one
// of two at a position. What was translated is no message again, and the file comes back byte for byte.
func TestResumedSessionIsABranch(t *testing.T) {
	for o, targets := range map[int][]string{0: {"codex", "pi"}, 2: {"pi", "claude-code"}, 4: {"claude-code", "qwen"}, 5: {"qwen", "codex"}} {
		for _, target := range targets {
			t.Run(owned[o].agent+" in "+target, func(t *testing.T) {
				h := newHome(t)
				h.sampleAlone(owned[o])
				h.follow()
				threads := h.threads()
				thread := threads[0]
				spans := h.spans(h.tip(thread))
				at := spans[len(spans)/2]
				before := h.texts(h.tip(thread))
				first, second := h.plan(target, thread, at), h.plan(target, thread, at)
				one, two := h.write(first), h.write(second)
				h.follow()
				require.Len(t, h.threads(), len(threads))
				got := h.says(first, one[len(one)-1], "user", "question one")
				h.says(second, two[len(two)-1], "user", "question two")
				h.follow()
				h.says(first, got, "assistant", "answer one")
				h.follow()
				h.follow()
				require.Len(t, h.threads(), len(threads))
				history := h.texts(at)
				require.Equal(t, append(history[:len(history):len(history)], "question one", "answer one"), h.texts(h.branch(thread, first)))
				require.Equal(t, append(history[:len(history):len(history)], "question two"), h.texts(h.branch(thread, second)))
				require.Equal(t, before, h.texts(h.tip(thread)))
				for _, s := range []*resume.Session{first, second} {
					source, err := follow.FindSource(bg, h.store, h.machine.ID, s.File())
					require.NoError(t, err)
					var out bytes.Buffer
					require.NoError(t, source.Export(bg, &out))
					raw, err := os.ReadFile(s.File())
					require.NoError(t, err)
					require.Equal(t, string(raw), out.String())
				}
				info, err := thread.Info(bg)
				require.NoError(t, err)
				require.Equal(t, owned[o].session, info.SourceID)

				// The branch is resumed with its own lines, where the session was made in its own agent.
				again := h.plan(target, thread, h.branch(thread, first))
				require.Equal(t, len(h.spans(h.branch(thread, first))), again.Messages)
				require.GreaterOrEqual(t, again.Own, 0)

				// Where nothing is known of it, it is a thread.
				other := lineagetest.New(t, lineage.Options{})
				require.NoError(t, follow.Run(bg, other, follow.Options{Once: true, Environment: h.environment, Machine: h.machine}))
				_, err = other.FindThread(bg, first.ID)
				require.NoError(t, err)

				// A thread that was deleted does not come back.
				require.NoError(t, thread.Delete(bg))
				h.says(second, two[len(two)-1], "assistant", "answer two")
				h.follow()
				_, err = h.store.FindThread(bg, second.ID)
				require.ErrorIs(t, err, lineage.ErrNotFound)
				require.Len(t, h.threads(), len(threads)-1)
			})
		}
	}
}

// A file that does not begin with what was written has another history, and is a thread.
func TestResumedFileThatWasChanged(t *testing.T) {
	h := newHome(t)
	h.sampleAlone(owned[4])
	h.follow()
	thread := h.threads()[0]
	s := h.plan("codex", thread, h.tip(thread))
	lines := h.write(s)
	require.NoError(t, os.WriteFile(s.File(), []byte(strings.Replace(string(bytes.Join(lines, []byte("\n"))), `"text":"`, `"text":"Not `, 1)+"\n"), 0o600))
	h.follow()
	require.Len(t, h.threads(), 2)
	require.NotEmpty(t, h.texts(h.tip(h.thread(s.ID))))
}

// A thread without a session gets a branch, too, and keeps its metadata and its user.
func TestResumedThreadOfAProgram(t *testing.T) {
	h := newHome(t)
	var sessions []*resume.Session
	var threads []*lineage.Thread
	for _, user := range []string{"ada", "bo"} { // with equal ids of messages
		thread, err := h.store.CreateThread(bg, lineage.ThreadOptions{UserID: user, Title: "Of " + user, Metadata: []byte(`{"kind":"mine"}`)})
		require.NoError(t, err)
		active, err := thread.Active(bg)
		require.NoError(t, err)
		_, err = active.Extend(bg, lineage.Item{Kind: lineage.Message, Role: "user", SourceID: "m1", Body: []byte("hello of " + user)})
		require.NoError(t, err)
		s := h.plan("pi", thread, h.tip(thread))
		lines := h.write(s)
		h.says(s, lines[len(lines)-1], "assistant", "answer to "+user)
		sessions, threads = append(sessions, s), append(threads, thread)
	}
	h.follow()
	require.Len(t, h.threads(), 2)
	for i, user := range []string{"ada", "bo"} {
		require.Equal(t, []string{"hello of " + user, "answer to " + user}, h.texts(h.branch(threads[i], sessions[i])))
		info, err := threads[i].Info(bg)
		require.NoError(t, err)
		require.Equal(t, []string{user, "Of " + user, `{"kind":"mine"}`}, []string{info.UserID, info.Title, string(info.Metadata)})
	}
}

// kept returns what is kept of a session's file, nil for nothing.
func (h *home) kept(path string) *follow.Source {
	h.t.Helper()
	source, err := follow.FindSource(bg, h.store, h.machine.ID, path)
	if err != nil {
		require.ErrorIs(h.t, err, lineage.ErrNotFound)
	}
	return source
}

// requireExact requires that a file comes back.
func (h *home) requireExact(path string) {
	h.t.Helper()
	var out bytes.Buffer
	source := h.kept(path)
	require.NotNil(h.t, source, path)
	require.NoError(h.t, source.Export(bg, &out))
	raw, err := os.ReadFile(path)
	require.NoError(h.t, err)
	require.Equal(h.t, string(raw), out.String())
}

// subagent writes the file of a subagent of a session of Claude Code.
func (h *home) subagent(s *resume.Session, said string) string {
	h.t.Helper()
	path := filepath.Join(strings.TrimSuffix(s.File(), ".jsonl"), "subagents", "agent-x.jsonl")
	line := fmt.Sprintf(`{"parentUuid":null,"isSidechain":true,"agentId":"x","sessionId":%q,"cwd":%q,"type":"user","message":{"role":"user","content":%q},"uuid":%q,"timestamp":"2026-11-30T00:00:00.000Z"}`, s.ID, h.work, said, "new-"+said)
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(h.t, os.WriteFile(path, []byte(line+"\n"), 0o600))
	return path
}

// What a thread's sessions say goes with the thread, also before anything was added to them and with their subagents. Those of another
// thread stay.
func TestResumedSessionsGoWithTheirThread(t *testing.T) {
	h := newHome(t)
	var threads []*lineage.Thread
	var made [2][]*resume.Session
	var files [2][]string
	for i, user := range []string{"ada", "bo"} { // with equal ids of messages
		thread, err := h.store.CreateThread(bg, lineage.ThreadOptions{UserID: user})
		require.NoError(t, err)
		active, err := thread.Active(bg)
		require.NoError(t, err)
		_, err = active.Extend(bg, lineage.Item{Kind: lineage.Message, Role: "user", SourceID: "m1", Body: []byte("hello of " + user)})
		require.NoError(t, err)
		for _, agent := range []string{"codex", "pi", "claude-code", "qwen", "gemini"} {
			s := h.plan(agent, thread, h.tip(thread))
			h.write(s)
			made[i], files[i] = append(made[i], s), append(files[i], s.File())
		}
		threads = append(threads, thread)
	}
	h.follow()
	for i := range files {
		files[i] = append(files[i], h.subagent(made[i][2], "look"))
	}
	h.follow()
	require.Len(t, h.threads(), 2)
	n, err := follow.ForgetDeleted(bg, h.store)
	require.NoError(t, err)
	require.Zero(t, n)

	require.NoError(t, threads[0].Delete(bg))
	for _, path := range files[0] {
		var out bytes.Buffer
		require.ErrorIs(t, h.kept(path).Export(bg, &out), lineage.ErrNotFound, path)
		require.Empty(t, out.Bytes())
	}
	n, err = follow.ForgetDeleted(bg, h.store)
	require.NoError(t, err)
	require.Equal(t, len(files[0]), n)
	for i := range files[0] {
		require.Nil(t, h.kept(files[0][i]))
		h.requireExact(files[1][i])
	}
	raw, err := os.ReadFile(files[0][0])
	require.NoError(t, err)
	h.says(made[0][0], raw, "user", "and on")
	h.follow() // the deleted one stays away
	require.Nil(t, h.kept(files[0][0]))
	require.Len(t, h.threads(), 1)
}

// A file of another agent, or a compressed one that does not begin with what was written, is not the session, whatever it says.
func TestFileThatSaysItIsTheSession(t *testing.T) {
	h := newHome(t)
	h.sampleAlone(owned[4])
	h.follow()
	thread := h.threads()[0]
	codex, gemini := h.plan("codex", thread, h.tip(thread)), h.plan("gemini", thread, h.tip(thread))
	lines := h.write(codex)
	h.write(gemini)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	pack := func(content string) {
		require.NoError(t, os.WriteFile(codex.File()+".zst", z.EncodeAll([]byte(content), nil), 0o600))
		require.NoError(t, os.RemoveAll(codex.File()))
	}
	whole := string(bytes.Join(lines, []byte("\n"))) + "\n"
	pack(whole)
	h.follow()
	require.Len(t, h.threads(), 1)
	pack(strings.ReplaceAll(whole, `"text":"`, `"text":"Not `))
	h.put("pi", "--w--/2026_1.jsonl", fmt.Appendf(nil, `{"type":"session","version":3,"id":%q,"timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":%q,"parentId":null,"timestamp":"2026-11-30T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"mine"}],"timestamp":1}}
`, gemini.ID, gemini.ID))
	h.follow()
	require.Len(t, h.threads(), 3)
	require.NotEmpty(t, h.texts(h.tip(h.thread(codex.ID))))
	require.Equal(t, []string{"mine"}, h.texts(h.tip(h.thread(gemini.ID))))
}

// Gemini CLI states its context in a file of its own when it resumes a session in another minute than that in which it was begun, and goes
// on in the first file. The two files are one branch.
func TestGeminiResumesInAnotherMinute(t *testing.T) {
	for name, first := range map[string]string{"second": "session-2030-01-01T00-00-", "first": "session-2000-01-01T00-00-"} {
		t.Run(name, func(t *testing.T) { geminiInAnotherMinute(t, first) })
	}
}

func geminiInAnotherMinute(t *testing.T, name string) {
	h := newHome(t)
	thread := h.library()
	spans := h.spans(h.tip(thread))
	s := h.plan("gemini", thread, spans[4])
	lines := h.write(s)
	stated := `{"id":"d04923d38bb0f6017037e74183378ef4","timestamp":"2026-11-28T15:33:02.181Z","type":"user","content":[{"text":"<session_context>\nThis is the Gemini CLI."}]}`
	second := filepath.Join(filepath.Dir(s.File()), name+s.ID[:8]+".jsonl")
	require.NoError(t, os.WriteFile(second, fmt.Appendf(nil, `{"sessionId":%q,"projectHash":"p","startTime":"2030-01-01T00:00:00.000Z","lastUpdated":"2030-01-01T00:00:00.000Z","kind":"main"}`+"\n"+`{"$set":{"messages":[%s]}}`+"\n", s.ID, stated), 0o600))
	f, err := os.OpenFile(s.File(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, `{"$set":{"messages":[%s,%s]}}`+"\n"+`{"id":"p1","timestamp":"2030-01-01T00:00:01Z","type":"user","content":[{"text":"And now?"}]}`+"\n"+`{"id":"p2","timestamp":"2030-01-01T00:00:02Z","type":"gemini","content":"Noted."}`+"\n", stated, bytes.Join(lines[1:], []byte(",")))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	for range 2 {
		h.follow()
		require.Len(t, h.threads(), 1)
		added := h.spans(h.branch(thread, s))
		require.Len(t, added, 7)
		require.Equal(t, spans[:5], added[:5])
	}
	for _, file := range []string{s.File(), second} {
		source, err := follow.FindSource(bg, h.store, h.machine.ID, file)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, source.Export(bg, &out))
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(raw), out.String())
	}
}

// What a resumed session cost is that of its branch, also where its agent states it in a record of its own.
func TestResumedSessionCosts(t *testing.T) {
	for _, c := range []struct {
		of     int
		target string
		line   string
	}{
		{2, "codex", `{"timestamp":"2026-11-30T00:00:01.000Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":70,"output_tokens":5},"last_token_usage":{"input_tokens":70,"output_tokens":5}}}}`},
		{0, "pi", `{"type":"message","id":"answer01","parentId":"question","timestamp":"2026-11-30T00:00:01.000Z","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"x"}],"usage":{"input":70,"output":5},"timestamp":1}}`},
	} {
		h := newHome(t)
		h.sampleAlone(owned[c.of])
		h.follow()
		thread := h.threads()[0]
		s := h.plan(c.target, thread, h.tip(thread))
		lines := h.write(s)
		h.says(s, lines[len(lines)-1], "user", "question")
		h.follow()
		f, err := os.OpenFile(s.File(), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteString(c.line + "\n")
		require.NoError(t, err)
		require.NoError(t, f.Close())
		h.follow()
		x, err := usage.Open(bg, h.store, t.TempDir(), usage.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, x.Close()) })
		for _, q := range []usage.Query{{}, {Thread: thread.ID()}} {
			q.By = []usage.By{usage.Branch}
			report, err := x.Report(bg, q)
			require.NoError(t, err)
			branches := make(map[string]int64)
			for _, row := range report.Rows {
				branches[row.Keys[0]] = row.Tokens[message.Input].N
			}
			require.EqualValues(t, 70, branches[s.Agent.Name+"-"+s.ID[len(s.ID)-12:]], "%v", branches)
		}
	}
}
