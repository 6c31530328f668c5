package resume_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/resume"
)

// A stored session never switches a safety off: for each agent, whatever gives permissions is left out, however it is written.
func TestNoPermissionComesBack(t *testing.T) {
	cases := []struct{ agent, path, lines, twice string }{ // twice is a line with a key twice: then nothing is the agent's own
		{"codex", "2026/01/01/rollout-2026-01-01T00-00-00-01a21e42-0000-7492-bf98-cb89e6a74924.jsonl", `
{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"01a21e42-0000-7492-bf98-cb89e6a74924","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","originator":"codex_cli","cli_version":"0.171.0","source":"cli","runtime_workspace_roots":["/EVIL"],"sandbox_policy":{"type":"EVIL"}}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"turn_context","payload":{"cwd":"/w","approval_policy":"EVIL","approval\u005fpolicy":"EVIL","sandbox_policy":{"type":"EVIL"},"permission_profile":{"type":"EVIL"},"model":"m","nested":[{"writable_roots":["/EVIL"]}]}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{"type":"thread_settings_applied","thread_settings":{"approval_policy":"EVIL"}}}
{"timestamp":"2026-01-01T00:00:00.000Z","type":"unheard_of","payload":{"settings":{"bypassApprovals":"EVIL"}}}
{"timestamp":"2026-01-01T00:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Hello"}]}}
{"timestamp":"2026-01-01T00:00:02.000Z","type":"event_msg","payload":{"type":"approved","approval":"EVIL"}}
`, `{"type":"response_item","timestamp":"2026-01-01T00:00:01.000Z","type":"turn_context","payload":{"type":"message","role":"user","content":[],"approval_policy":"EVIL"}}`},
		{"pi", "--w--/2026-01-01T00-00-00-000Z_s1.jsonl", `
{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","trusted":"EVIL"}
{"type":"custom","customType":"modes","data":{"mode":"EVIL"},"id":"c1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}
{"type":"message","id":"m1","parentId":"c1","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Hello"}],"timestamp":1}}
`, ""},
		{"claude-code", "-w/0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550009.jsonl", `
{"type":"permission-mode","permissionMode":"EVIL","sessionId":"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550009"}
{"type":"mode","mode":"EVIL","sessionId":"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550009"}
{"type":"agent-setting","agentSetting":"EVIL","sessionId":"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550009"}
{"type":"attachment","attachment":{"type":"command_permissions","allowedTools":["EVIL"]},"uuid":"a1","parentUuid":null,"sessionId":"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550009"}
{"type":"user","message":{"role":"user","content":"Hello"},"permission\u004dode":"EVIL","uuid":"u0","parentUuid":"a1","sessionId":"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550009","timestamp":"2026-01-01T00:00:01.000Z"}
{"type":"user","message":{"role":"user","content":"Hello again"},"permissionMode":"EVIL","uuid":"u1","parentUuid":"u0","sessionId":"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550009","timestamp":"2026-01-01T00:00:01.000Z"}
`, `{"type":"user","message":{"role":"user","content":"Twice"},"permissionMode":"EVIL","permission\u004dode":"EVIL","uuid":"u2","parentUuid":"u1","sessionId":"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550009","timestamp":"2026-01-01T00:00:01.000Z"}`},
		{"qwen", "-w/chats/27d495d1-de2d-449d-af11-d42d4d6ef80e.jsonl", `
{"uuid":"s1","parentUuid":null,"sessionId":"27d495d1-de2d-449d-af11-d42d4d6ef80e","timestamp":"2026-01-01T00:00:00.000Z","type":"system","subtype":"mode","cwd":"/w","version":"0.21.6","systemPayload":{"approvalMode":"EVIL"}}
{"uuid":"u1","parentUuid":"s1","sessionId":"27d495d1-de2d-449d-af11-d42d4d6ef80e","timestamp":"2026-01-01T00:00:01.000Z","type":"user","cwd":"/w","version":"0.21.6","approvalMode":"EVIL","message":{"role":"user","parts":[{"text":"Hello"}]}}
`, ""},
		{"gemini", "w/chats/session-2026-01-01T00-00-be8bdd25.jsonl", `
{"sessionId":"be8bdd25-be91-4732-ab18-00726ebdee11","projectHash":"EVIL","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","kind":"main","approvalMode":"EVIL"}
{"$set":{"approvalMode":"EVIL"}}
{"id":"m1","timestamp":"2026-01-01T00:00:01.000Z","type":"user","content":[{"text":"Hello"}],"permissions":"EVIL"}
`, ""},
	}
	for _, c := range cases {
		for _, more := range []string{"", `{"type":"user","permissionMode":"EVIL","approval_policy":"EVIL`, c.twice + "\n"} { // the second is torn off
			h := newHome(t)
			h.put(c.agent, c.path, []byte(strings.TrimPrefix(c.lines, "\n")+more))
			h.follow()
			threads := h.threads()
			require.Len(t, threads, 1)
			s := h.plan(c.agent, threads[0], h.tip(threads[0]))
			twice := len(more) > 1 && strings.HasSuffix(more, "\n")
			require.Equal(t, c.agent != "gemini" && !twice, s.Own > 0, c.agent) // which is always translated
			h.write(s)
			raw, err := os.ReadFile(s.File())
			require.NoError(t, err)
			require.NotContains(t, string(raw), "EVIL", c.agent)
			require.Contains(t, string(raw), "Hello", c.agent)
			require.Equal(t, twice && c.agent == "claude-code", strings.Contains(string(raw), "Twice"), c.agent) // nothing is dropped
		}
	}
}

// What a message says about permissions stays.
func TestWhatWasSaidStays(t *testing.T) {
	h := newHome(t)
	thread, err := h.store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	h.extend(thread, jsonItem("assistant", `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"set","arguments":"{\"permissionMode\":\"ask\"}"}}]}`), jsonItem("tool", `{"role":"tool","tool_call_id":"c","content":"permissionMode=ask"}`))
	for _, name := range resume.Agents() {
		s := h.plan(name, thread, h.tip(thread))
		h.write(s)
		raw, err := os.ReadFile(s.File())
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(string(raw), "permissionMode"), name)
	}
}

// A session's file is new: nothing is overwritten, no link leads out of the agent's folder, and other users cannot read it.
func TestNothingIsOverwritten(t *testing.T) {
	h := newHome(t)
	thread := h.library()
	for _, name := range resume.Agents() {
		s := h.plan(name, thread, h.tip(thread))
		h.write(s)
		info, err := os.Stat(s.File())
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
		for dir := filepath.Dir(s.File()); dir != h.dir; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), dir)
		}
		before, err := os.ReadFile(s.File())
		require.NoError(t, err)
		_, err = s.Write(bg)
		require.ErrorIs(t, err, fs.ErrExist)
		after, err := os.ReadFile(s.File())
		require.NoError(t, err)
		require.Equal(t, before, after)

		// The folder of the file leads elsewhere.
		elsewhere := t.TempDir()
		s = h.plan(name, thread, h.tip(thread))
		first, _, _ := strings.Cut(s.Path, "/")
		require.NoError(t, os.RemoveAll(filepath.Join(s.Root, first)))
		require.NoError(t, os.Symlink(elsewhere, filepath.Join(s.Root, first)))
		_, err = s.Write(bg)
		require.Error(t, err)
		left, err := os.ReadDir(elsewhere)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// Folders are quoted for a shell, and those that cannot be printed are refused.
func TestFolders(t *testing.T) {
	h := newHome(t)
	thread := h.library()
	for name, shell := range map[string]string{"plain": "plain", "it's $(here)": `it'\''s $(here)`, "-n": "-n", "a;b&c": "a;b&c"} {
		dir := filepath.Join(h.dir, name)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		s, err := resume.New(bg, h.store, h.tip(thread), resume.Options{Agent: "pi", Thread: thread.ID(), Dir: dir, Environment: h.environment})
		require.NoError(t, err)
		require.Contains(t, s.Shell(), shell)
		require.False(t, strings.Contains(s.Path, ".."))
		h.write(s)
	}
	for _, dir := range []string{"relative", filepath.Join(h.dir, "nonesuch"), h.dir + "/a\x1b[31m", h.dir + "/\xff", h.dir + "/new\nline"} {
		if dir != "relative" && !strings.HasSuffix(dir, "nonesuch") {
			require.NoError(t, os.MkdirAll(dir, 0o755))
		}
		_, err := resume.New(bg, h.store, h.tip(thread), resume.Options{Agent: "pi", Thread: thread.ID(), Dir: dir, Environment: h.environment})
		require.ErrorIs(t, err, resume.ErrNoFolder, "%q", dir)
	}
}

// What no session can be made of is an error that says why.
func TestErrors(t *testing.T) {
	h := newHome(t)
	thread := h.library()
	make := func(agent string, tip lineage.SpanRef) error {
		_, err := resume.New(bg, h.store, tip, resume.Options{Agent: agent, Thread: thread.ID(), Dir: h.work, Environment: h.environment})
		return err
	}
	require.ErrorIs(t, make("", h.tip(thread)), resume.ErrNoWayIn)
	for _, agent := range []string{"vscode", "copilot", "cursor", "cline", "openclaw"} {
		err := make(agent, h.tip(thread))
		require.ErrorIs(t, err, resume.ErrNoWayIn)
		require.Regexp(t, `: [a-z][^:]+$`, err.Error(), "a reason")
	}
	require.ErrorIs(t, make("nonesuch", h.tip(thread)), lineage.ErrInvalid)
	require.ErrorIs(t, make("pi", lineage.SpanRef{}), resume.ErrNothing)
	command, err := h.store.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	h.extend(command, lineage.User("/help"))
	require.ErrorIs(t, make("gemini", h.tip(command)), resume.ErrNothing, "the agent finds no session without another message")
	require.NoError(t, make("pi", h.tip(command)))
	h.extend(command, lineage.Assistant("There is help."))
	require.NoError(t, make("gemini", h.tip(command)))
	require.True(t, errors.Is(make("pi", lineage.SpanRef{Run: h.tip(thread).Run, Seq: 99}), lineage.ErrNotFound))
}

// Of two users whose sessions have equal ids of messages, each gets the own lines only.
func TestEqualIDs(t *testing.T) {
	h := newHome(t)
	line := `{"type":"session","version":3,"id":"ID","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}
{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"I am ID"}],"timestamp":1}}
`
	for _, id := range []string{"first", "second"} {
		h.put("pi", "--w--/2026_"+id+".jsonl", []byte(strings.ReplaceAll(line, "ID", id)))
	}
	h.follow()
	for _, id := range []string{"first", "second"} {
		s := h.plan("pi", h.thread(id), h.tip(h.thread(id)))
		require.Equal(t, 1, s.Own)
		raw := string(h.write(s)[1])
		require.Contains(t, raw, "I am "+id)
	}
}

// What was erased is left out, and the rest is translated.
func TestErased(t *testing.T) {
	h := newHome(t)
	o := owned[2]
	h.sample(o.agent, o.path, o.sample)
	h.follow()
	thread := h.thread(o.session)
	for e, err := range h.store.History(bg, h.tip(thread), lineage.Window{From: 5, To: 5}) {
		require.NoError(t, err)
		for _, id := range e.Contents() {
			require.NoError(t, h.store.Erase(bg, id))
		}
	}
	s := h.plan(o.agent, thread, h.tip(thread))
	require.Zero(t, s.Own)
	require.NotEmpty(t, s.Losses)
	lines := h.write(s)
	require.Greater(t, len(lines), 4)
	for _, line := range lines {
		require.NotContains(t, string(line), "Thank you")
	}
}

// A project that Gemini CLI knows keeps its folder, and another one gets a folder that the agent finds.
func TestGeminiFindsTheFolder(t *testing.T) {
	h := newHome(t)
	thread := h.library()
	folder := func() string {
		s := h.plan("gemini", thread, h.tip(thread))
		h.write(s)
		name, _, _ := strings.Cut(s.Path, "/")
		return name
	}
	first := folder()
	require.Equal(t, first, folder()) // by its marker
	h.write0(".gemini/projects.json", `{"projects":{"`+h.work+`":"mine"}}`)
	require.Equal(t, "mine", folder())
	h.write0(".gemini/tmp/mine/.project_root", "/of/another")
	require.Equal(t, first, folder())
	for _, name := range []string{"../..", "a/b", "A", ""} { // not what the agent writes
		h.write0(".gemini/projects.json", `{"projects":{"`+h.work+`":"`+name+`"}}`)
		require.Equal(t, first, folder())
	}
	h.write0(".gemini/projects.json", `{`)
	require.Equal(t, first, folder())
}

// A session of Codex states a model provider that is configured, without which Codex does not continue it at a terminal.
func TestCodexKnowsTheProvider(t *testing.T) {
	for _, c := range []struct{ config, own, made string }{
		{"", "openai", "openai"},
		{"model_provider = \"here\"\n[model_providers.here]\nname = \"x\"\n", "here", "here"},
		{"model_provider = 'here'\n[model_providers.\"demo\"]\nmodel_provider = \"no\"\n", "demo", "here"},
		{"[profiles.a]\nmodel_provider = \"no\"\n[model_providers.demo] # own\n", "demo", "openai"},
	} {
		h := newHome(t)
		o := owned[0] // of the provider "demo"
		h.sample(o.agent, o.path, o.sample)
		h.follow()
		if c.config != "" {
			h.write0(".codex/config.toml", c.config)
		}
		own := h.write(h.plan("codex", h.thread(o.session), h.tip(h.thread(o.session))))
		require.Contains(t, string(own[0]), `"model_provider":"`+c.own+`"`, c.config)
		thread := h.library()
		made := h.write(h.plan("codex", thread, h.tip(thread)))
		require.Contains(t, string(made[0]), `"model_provider":"`+c.made+`"`, c.config)
	}
}

// What would take too much memory to translate is refused before it is read, and own lines are not.
func TestTooLarge(t *testing.T) {
	h := newHome(t)
	o := owned[2]
	h.sample(o.agent, o.path, o.sample)
	h.follow()
	thread := h.thread(o.session)
	make := func(agent string) error {
		_, err := resume.New(bg, h.store, h.tip(thread), resume.Options{Agent: agent, Thread: thread.ID(), Dir: h.work, Environment: h.environment, MaxMade: 1000})
		return err
	}
	require.ErrorIs(t, make("codex"), lineage.ErrTooLarge)
	require.NoError(t, make("pi"))
}

// Whether a history is of this machine is known by the id of the machine in the sources, and by nothing that a thread states.
func TestIsFrom(t *testing.T) {
	h := newHome(t)
	other := follow.Machine{ID: strings.Repeat("2", 32), Name: h.machine.Name, Secret: h.machine.Secret}
	isFrom := func(agent string, thread *lineage.Thread, m follow.Machine) bool {
		got, err := h.plan(agent, thread, h.tip(thread)).IsFrom(bg, m)
		require.NoError(t, err)
		return got
	}
	o := owned[2]
	raw := h.sample(o.agent, o.path, o.sample)
	h.follow()
	thread := h.thread(o.session)
	for _, agent := range []string{"pi", "codex"} {
		require.True(t, isFrom(agent, thread, h.machine), agent)
		require.False(t, isFrom(agent, thread, other), agent)
		require.False(t, isFrom(agent, thread, follow.Machine{Name: h.machine.Name, Secret: h.machine.Secret}), agent)
		require.False(t, isFrom(agent, thread, follow.Machine{ID: h.machine.ID, Name: h.machine.Name}), agent)
		require.False(t, isFrom(agent, thread, follow.Machine{ID: h.machine.ID, Name: h.machine.Name, Secret: "another"}), agent)
	}
	// Somebody who knows the id of the machine, which is in the store, goes on with the source.
	own := h.machine
	h.machine.Secret = "another"
	lines := bytes.SplitAfter(raw, []byte("\n"))
	h.put(o.agent, o.path, append(raw, bytes.Replace(lines[len(lines)-2], []byte(`"id":"`), []byte(`"id":"f`), 1)...))
	h.follow()
	h.machine = own
	require.False(t, isFrom("pi", thread, h.machine))
	h.extend(thread, jsonItem("user", `{"role":"user","content":"added by somebody"}`))
	require.False(t, isFrom("pi", thread, h.machine))
	forged, err := h.store.CreateThread(bg, lineage.ThreadOptions{Metadata: []byte(`{"machine":"here","agent":"pi"}`)})
	require.NoError(t, err)
	h.extend(forged, jsonItem("user", `{"role":"user","content":"start me"}`))
	s := h.plan("pi", forged, h.tip(forged))
	require.Equal(t, "here", s.Machine)
	require.False(t, isFrom("pi", forged, h.machine))
}

// A source that is damaged stops nothing: sessions of others have their own lines.
func TestDamagedSource(t *testing.T) {
	h := newHome(t)
	o := owned[2]
	h.sample(o.agent, o.path, o.sample)
	h.follow()
	for _, id := range []string{"source a", "source z"} {
		about, err := json.Marshal(map[string]any{"aside": lineage.AsideSource, "source": follow.SourceOf{Machine: "x", Path: "/" + id}})
		require.NoError(t, err)
		c, err := h.store.NewContext(bg, lineage.ContextOptions{SourceID: id, Metadata: about})
		require.NoError(t, err)
		_, err = c.Extend(bg, lineage.User("no manifest"))
		require.NoError(t, err)
	}
	thread := h.thread(o.session)
	s := h.plan(o.agent, thread, h.tip(thread))
	require.Equal(t, s.Messages, s.Own)
	damaged := 0
	for source, err := range follow.Sources(bg, h.store) {
		if errors.Is(err, lineage.ErrCorrupt) {
			require.NotNil(t, source)
			damaged++
		} else {
			require.NoError(t, err)
		}
	}
	require.Equal(t, 2, damaged)
}

// Records that state a folder state that of the new session.
func TestFolderOfRecords(t *testing.T) {
	h := newHome(t)
	o := owned[0]
	h.sample(o.agent, o.path, o.sample)
	h.follow()
	contexts := 0
	for _, line := range h.write(h.plan("codex", h.thread(o.session), h.tip(h.thread(o.session)))) {
		var record struct {
			Type    string
			Payload struct{ Cwd string }
		}
		require.NoError(t, json.Unmarshal(line, &record))
		if record.Type == "turn_context" {
			contexts++
			require.Equal(t, h.work, record.Payload.Cwd)
		}
	}
	require.Positive(t, contexts)
}

// What a subagent of Claude Code said is continued as a session, which the agent does not show if its lines say that they are
// of a subagent.
func TestSubagentContinues(t *testing.T) {
	h := newHome(t)
	const session = "0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001"
	h.sample("claude-code", "-w/"+session+".jsonl", "claude-code-made/"+session+".jsonl")
	h.put("claude-code", "-w/agent-a1.jsonl", []byte(`{"parentUuid":null,"isSidechain":true,"agentId":"a1","sessionId":"`+session+`","type":"user","message":{"role":"user","content":"Count the files."},"uuid":"s-1","timestamp":"2026-01-05T10:00:03.000Z"}
{"parentUuid":"s-1","isSidechain":true,"agentId":"a1","sessionId":"`+session+`","type":"assistant","message":{"id":"msg_s","type":"message","role":"assistant","model":"claude-h","content":[{"type":"text","text":"Two."}]},"uuid":"s-2","timestamp":"2026-01-05T10:00:04.000Z"}
`))
	h.follow()
	thread := h.thread(session)
	found := false
	for info, err := range h.store.View().Contexts(bg, lineage.ThreadID{}, lineage.ContextID{}) {
		require.NoError(t, err)
		if info.Thread != thread.ID() || info.Tip.IsZero() || !slices.ContainsFunc(h.texts(info.Tip), func(said string) bool { return strings.Contains(said, "Two.") }) {
			continue
		}
		found = true
		s := h.plan("claude-code", thread, info.Tip)
		raw := string(bytes.Join(h.write(s), []byte("\n")))
		require.Contains(t, raw, "Two.")
		require.Positive(t, s.Own)
		require.NotContains(t, raw, `"isSidechain":true`)
		require.NotContains(t, raw, "agentId")
	}
	require.True(t, found)
}

// What is lost is listed from the first message to the last.
func TestLossesAreInOrder(t *testing.T) {
	h := newHome(t)
	thread, err := h.store.CreateThread(bg, lineage.ThreadOptions{Title: "Losses"})
	require.NoError(t, err)
	h.extend(thread, lineage.System("Be brief."), lineage.User("Name a colour."), lineage.Assistant("Blue."), lineage.System("Be polite."), lineage.User("And another."))
	for _, agent := range []string{"opencode", "claude-code", "pi"} {
		var positions []uint64
		for _, l := range h.plan(agent, thread, h.tip(thread)).Losses {
			positions = append(positions, l.Position)
		}
		require.Equal(t, uint64(1), positions[0], agent)
		require.Contains(t, positions, uint64(4), agent)
		require.IsNonDecreasing(t, positions, agent)
	}
}
