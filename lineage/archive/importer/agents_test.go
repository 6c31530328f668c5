package importer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// Sessions of all agents state the same facts under the same keys of the thread's metadata.
func TestSessionsStateTheirAgent(t *testing.T) {
	for path, want := range map[string]string{
		"claude-code-spotter/short.jsonl":                                               `{"agent":"claude-code","agentVersion":"2.1.38","model":"claude-opus-4-6","cwd":"/home/marco/projects/spotter","gitBranch":"master"}`,
		"codex-made/rollout-fork.jsonl":                                                 `{"agent":"codex","agentVersion":"0.50.0","cwd":"/w"}`,
		"agentsview/standard_session.jsonl":                                             `{"agent":"codex","cwd":"/Users/alice/code/my-api"}`,
		"agents/pi/2026-11-27T18-30-31-003Z_01a21e45-f55a-7165-8fa1-7f4a09997b5f.jsonl": `{"agent":"pi","model":"m-1","cwd":"/home/dev/work"}`,
		"agents/openclaw/7d1a2b3c-0000-4000-8000-000000000007.jsonl":                    `{"agent":"openclaw","model":"stand-in","cwd":"/home/ada/work"}`,
		"agents/copilot/made/events.jsonl":                                              `{"agent":"copilot","agentVersion":"1.0.80","model":"gpt-5","cwd":"/home/dev/app","gitBranch":"fix"}`,
		"agents/cline/1795858456629_jd2u5/1795858456629_jd2u5.messages.json":            `{"agent":"cline","agentVersion":"3.0.65","model":"demo-1","cwd":"/home/ada/work"}`,
		"agents/gemini/session-2026-11-27T19-00-be8bdd25.jsonl":                         `{"agent":"gemini","model":"gemini-2.5-pro"}`,
		"agents/qwen/made.jsonl":                                                        `{"agent":"qwen","agentVersion":"0.21.6","model":"qwen3","cwd":"/home/dev/app","gitBranch":"main"}`,
	} {
		t.Run(path, func(t *testing.T) {
			s := storetest.New(t)
			_, err := importer.Import(t.Context(), s, archive.Path(fixture(path)), importer.Options{})
			require.NoError(t, err)
			for found, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
				require.NoError(t, err)
				info, err := found.Thread.Info(t.Context())
				require.NoError(t, err)
				require.Truef(t, strings.HasPrefix(string(info.Metadata), strings.TrimSuffix(want, "}")+","), "%s", info.Metadata)
			}
		})
	}
}

// What a line of Codex states beside its item is metadata of the message.
func TestCodexKeepsWhatIsBesideItems(t *testing.T) {
	conversations, damages := readAll(t, archive.Stream("r.jsonl", strings.NewReader(
		`{"timestamp":"2026-01-01T00:00:00Z","ordinal":0,"type":"session_meta","payload":{"id":"s"}}`+"\n"+
			`{"timestamp":"2026-01-01T00:00:00Z","ordinal":1,"type":"response_item","payload":{"type":"message","role":"user","content":"a"},"metadata":{"history_sequence":3}}`+"\n")), importer.Options{})
	require.Empty(t, damages)
	require.Equal(t, `{"metadata":{"history_sequence":3}}`, string(conversations[0].Nodes[0].Metadata))
}

// Codex wrote sessions whose lines are bare items: the messages are those of the session, which states its folder to the model.
func TestBareSessionsOfCodex(t *testing.T) {
	for name, environment := range map[string]string{
		"elements": "<environment_context>\n  <cwd>/src/my app</cwd>\n  <approval_policy>never</approval_policy>\n</environment_context>",
		"lines":    "<environment_context>\nCurrent working directory: /src/my app\nApproval policy: never\n</environment_context>",
	} {
		t.Run(name, func(t *testing.T) {
			stated, err := json.Marshal(environment)
			require.NoError(t, err)
			session := `{"id":"01989f7c-8f5a-7a31-9c8e-0a3f5d1b2c4d","timestamp":"2025-08-12T09:00:00.000Z","instructions":null,"git":{"branch":"fix"}}
{"record_type":"state"}
{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":` + string(stated) + `}]}
{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"List the files."}]}
{"type":"function_call","id":"fc_1","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"call_1"}
{"type":"function_call_output","call_id":"call_1","output":"a.go"}
{"type":"something_new","x":1}
{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"There is a.go."}]}
{"record_type":"state"}
`
			conversations, damages := readAll(t, archive.Stream("r.jsonl", strings.NewReader(session)), importer.Options{})
			require.Empty(t, damages)
			require.Len(t, conversations, 1)
			c := conversations[0]
			require.Equal(t, "01989f7c-8f5a-7a31-9c8e-0a3f5d1b2c4d", c.SourceID)
			require.Equal(t, time.Date(2025, 8, 12, 9, 0, 0, 0, time.UTC), c.Created.UTC())
			require.Equal(t, c.Created, c.Updated)
			require.Contains(t, string(c.Metadata), `"agent":"codex","cwd":"/src/my app","gitBranch":"fix"`)
			var roles, beside []string
			for _, n := range c.Nodes {
				if n.Aside == "" {
					roles = append(roles, n.Role)
				} else {
					beside = append(beside, n.Role)
				}
			}
			require.Equal(t, []string{"user", "user", "assistant", "tool", "assistant"}, roles)
			require.Equal(t, []string{"state", "something_new", "state"}, beside)
		})
	}
}

// The first Codex wrote a session as one object. Its items are those of a session with bare items.
func TestDocumentsOfCodex(t *testing.T) {
	items := []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\nCurrent working directory: /src/my app\n</environment_context>"}]}`,
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"List the files."}]}`,
		`{"type":"function_call","id":"fc_1","name":"shell","arguments":"{}","call_id":"call_1"}`,
		`{"type":"function_call_output","call_id":"call_1","output":"a.go"}`,
		`{"type":"something_new","x":1}`,
		`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"There is a.go."}]}`,
	}
	header := `"timestamp":"2025-04-20T09:00:00.000Z","id":"01989f7c-8f5a-7a31-9c8e-0a3f5d1b2c4d","instructions":"Be brief.`
	bare := "{" + header + "\"}\n" + strings.Join(items, "\n") + "\n"
	want, damages := readAll(t, archive.Stream("r.jsonl", strings.NewReader(bare)), importer.Options{})
	require.Empty(t, damages)
	for name, text := range map[string]string{
		"compact":   `{"session":{` + header + `"},"items":[` + strings.Join(items, ",") + `]}`,
		"pretty":    "{\n  \"session\": {" + header + "\"\n  },\n  \"items\": [\n    " + strings.Join(items, ",\n    ") + "\n  ]\n}",
		"reordered": `{"items":[` + strings.Join(items, ",") + `],"session":{` + header + `"}}`,
		"long":      `{"session":{` + header + strings.Repeat("a", archive.HeadSize) + `"},"items":[` + strings.Join(items, ",") + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			conversations, damages := readAll(t, archive.Stream("r.json", strings.NewReader(text)), importer.Options{})
			require.Empty(t, damages)
			require.Len(t, conversations, 1)
			c := conversations[0]
			require.Equal(t, want[0].SourceID, c.SourceID)
			require.Equal(t, want[0].Created, c.Created)
			require.Equal(t, c.Created, c.Updated)
			require.Contains(t, string(c.Metadata), `"agent":"codex","cwd":"/src/my app"`)
			var got, expected []archive.Node
			for _, n := range c.Nodes {
				if n.Aside == "" {
					n.At = archive.Position{}
					got = append(got, n)
				}
			}
			for _, n := range want[0].Nodes {
				if n.Aside == "" {
					n.At = archive.Position{}
					expected = append(expected, n)
				}
			}
			require.Equal(t, expected, got)
			require.Len(t, got, 5)
		})
	}
}

// A large field of a session is stored as content, once for all sessions.
func TestLargeFieldsOfSessions(t *testing.T) {
	s := storetest.New(t)
	told := strings.Repeat("You are an agent. ", 400)
	session := func(id string) string {
		return `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"` + id + `","cwd":"/w","git":{"branch":"fix"},"base_instructions":{"text":"` + told + `"}}}
{"timestamp":"2026-01-01T00:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":"` + id + `"}}
`
	}
	src := zipped(t, file{"a.jsonl", []byte(session("a"))}, file{"b.jsonl", []byte(session("b"))})
	report := importText(t, s, "z", string(src), importer.Options{})
	require.EqualValues(t, 2, report.NewConversations)
	require.Less(t, report.NewBytes, int64(2*len(told)))
	thread, err := s.FindThread(t.Context(), "a")
	require.NoError(t, err)
	info, err := thread.Info(t.Context())
	require.NoError(t, err)
	require.Less(t, len(info.Metadata), 512, "%s", info.Metadata)
	require.Contains(t, string(info.Metadata), `"agent":"codex","cwd":"/w","gitBranch":"fix"`)
}

// Branches, forks, subagents and logs of the sessions of agents, and what people read of them.
func TestSessionsOfAgents(t *testing.T) {
	for name, want := range map[string]struct{ conversations, shared int64 }{
		"pi":          {3, 14}, // a fork shares its messages
		"copilot":     {3, 0},
		"codex":       {1, 0},
		"gemini":      {2, 0},
		"vscode":      {2, 0},
		"qwen":        {4, 4},
		"antigravity": {1, 0},
		"atif":        {1, 0},
		"goose":       {1, 0},
		"cline":       {3, 0},
		"opencode":    {5, 0},
		"aider":       {3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, src := storetest.New(t), archive.Path(fixture("agents/"+name))
			report, err := importer.Import(t.Context(), s, src, importer.Options{})
			require.NoError(t, err)
			if name == "opencode" { // a published file that is broken, and a subagent that is read with its session
				require.EqualValues(t, 2, report.SkippedCount)
				require.ErrorIs(t, report.Skipped[0], archive.ErrNoMessages)
				require.ErrorContains(t, report.Skipped[1], "message msg_006: malformed")
			} else {
				require.Empty(t, report.Skipped)
			}
			require.Equal(t, want.conversations, report.NewConversations)
			require.Equal(t, want.shared, report.SharedMessages)
			goldenText(t, "agents_"+name+".stored.txt", stored(t, s))
			goldenText(t, "agents_"+name+".shown.txt", transcripts(t, s))
			requireSound(t, s)
			requireImportedAgain(t, s, src)
		})
	}
}

// transcripts returns what people read of the active branch of each thread of a store.
func transcripts(t *testing.T, s *lineage.Store) string {
	var b strings.Builder
	for found, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		active, err := found.Thread.Active(t.Context())
		require.NoError(t, err)
		info, err := found.Thread.Info(t.Context())
		require.NoError(t, err)
		tip, err := active.Info(t.Context())
		require.NoError(t, err)
		title, err := s.ShownTitle(t.Context(), info)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s: %s\n", info.SourceID, title)
		for i, err := range s.Transcript(t.Context(), tip.Tip, lineage.Window{}, transcript.Options{MaxText: 200}) {
			require.NoError(t, err)
			fmt.Fprintf(&b, "  %v (%s): %s\n", i.Kind, i.From.Role, i.Line())
			if i.Call != nil {
				for _, r := range i.Call.Results {
					fmt.Fprintf(&b, "    %s\n", r.Line())
				}
			}
		}
	}
	return b.String()
}

// Tasks of Cline that two machines began in the same millisecond are two threads. Both files of a task are of one.
func TestTasksWithEqualIDs(t *testing.T) {
	task := func(text string) string {
		return `[{"role":"user","content":[{"type":"text","text":"<task>\n` + text + `\n</task>"},{"type":"text","text":"# Current Working Directory (/w) Files"}],"ts":1770000000000},{"role":"assistant","content":"Done.","ts":1770000000001}]`
	}
	screen := func(text string) string {
		return `[{"ts":1770000000000,"type":"say","say":"text","text":"` + text + `"},{"ts":1770000000001,"type":"say","say":"api_req_started","text":"{\"tokensIn\":1,\"tokensOut\":2}"}]`
	}
	s := storetest.New(t)
	var files []file
	for _, text := range []string{"one", "two"} {
		dir := text + "/tasks/1770000000000/"
		files = append(files, file{dir + "api_conversation_history.json", []byte(task(text))}, file{dir + "ui_messages.json", []byte(screen(text))})
	}
	report := importText(t, s, "z", string(zipped(t, files...)), importer.Options{})
	require.EqualValues(t, 2, report.NewConversations)
	require.EqualValues(t, 4, report.NewMessages)
	require.Zero(t, importText(t, s, "z", string(zipped(t, files...)), importer.Options{}).NewMessages)
}

// Roo Code states the model in the environment that it adds to messages, of which the files are read in any order.
func TestModelOfRooCode(t *testing.T) {
	const environment = `<environment_details>\n# Current Mode\n<slug>code</slug>\n<model>sonnet</model>\n</environment_details>`
	task := `[{"role":"user","content":[{"type":"text","text":"<task>\nGo <model>x</model>\n</task>"},{"type":"text","text":"` + environment + `"}],"ts":1770000000000},{"role":"assistant","content":"Done.","ts":1770000000001}]`
	body := rawjson.Quote(`{"request":"` + environment + `","apiProtocol":"anthropic","tokensIn":30,"tokensOut":2,"cacheReads":20}`)
	screen := `[{"ts":1770000000001,"type":"say","say":"api_req_started","text":` + string(body) + `}]`
	s := storetest.New(t)
	importText(t, s, "z", string(zipped(t, file{"tasks/1770000000000/api_conversation_history.json", []byte(task)}, file{"tasks/1770000000000/ui_messages.json", []byte(screen)})), importer.Options{})
	var models []string
	for found, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		for c, err := range found.Thread.Contexts(t.Context()) {
			require.NoError(t, err)
			for e, err := range c.Entries(t.Context(), lineage.Window{}) {
				require.NoError(t, err)
				models = append(models, e.Role+" "+e.Origin.ModelID)
				if e.Role == "api_req_started" {
					text, err := s.Text(t.Context(), e)
					require.NoError(t, err)
					require.Contains(t, text, `"model":"sonnet"`)
				}
			}
		}
	}
	require.ElementsMatch(t, []string{"user ", "assistant sonnet", "api_req_started "}, models)
}

// Lines of Claude Code that come before their parents, also where a record is between them, are put after them: the second import
// finds the same messages. The first of lines that state each other as parents is put after the message before it.
func TestParentsThatComeLater(t *testing.T) {
	line := func(kind, id, parent string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"said %s"}}`+"\n", kind, id, parent, id)
	}
	session := line("user", "a", "null") + line("user", "d", `"p"`) + line("user", "c", `"b"`) + line("progress", "p", `"c"`) + line("user", "b", `"a"`) +
		line("user", "x", `"y"`) + line("user", "y", `"x"`)
	s := storetest.New(t)
	report := importText(t, s, "s.jsonl", session, importer.Options{})
	require.EqualValues(t, 6, report.NewMessages)
	require.Zero(t, importText(t, s, "s.jsonl", session, importer.Options{}).NewMessages)
	thread, err := s.FindThread(t.Context(), "s")
	require.NoError(t, err)
	branches, err := thread.Branches(t.Context())
	require.NoError(t, err)
	var histories []string
	for _, b := range branches {
		text := ""
		for e, err := range s.History(t.Context(), b.Head, lineage.Window{}) {
			require.NoError(t, err)
			text += e.SourceID
		}
		histories = append(histories, text)
	}
	require.Equal(t, []string{"abcdxy"}, histories)
}

// The files of messages, parts and projects of OpenCode are read with their session. Without that they are of no known format.
func TestFilesReadWithASession(t *testing.T) {
	storage := filepath.Join(t.TempDir(), "storage")
	for name, text := range map[string]string{
		"session/p1/ses_1.json":     `{"id":"ses_1","projectID":"p1","time":{"created":1}}`,
		"project/p1.json":           `{"id":"p1","worktree":"/w","time":{"created":1}}`,
		"message/ses_1/msg_1.json":  `{"id":"msg_1","role":"user","sessionID":"ses_1","time":{"created":1}}`,
		"part/msg_1/prt_1.json":     `{"id":"prt_1","sessionID":"ses_1","messageID":"msg_1","type":"text","text":"hi"}`,
		"message/ses_2/msg_2.json":  `{"id":"msg_2","role":"user","sessionID":"ses_2","time":{"created":1}}`,
		"part/msg_2/prt_2.json":     `{"id":"prt_2","sessionID":"ses_2","messageID":"msg_2","type":"text","text":"lost"}`,
		"part/msg_1/prt_other.json": `{"id":"prt_other","sessionID":"../session","messageID":"p1","type":"text","text":"lost"}`,
		"project/p2.json":           `{"id":"p2","worktree":"/w","time":{"created":1}}`,
	} {
		path := filepath.Join(storage, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	s := storetest.New(t)
	for range 2 {
		report, err := importer.Import(t.Context(), s, archive.Path(storage), importer.Options{})
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"message/ses_2/msg_2.json", "part/msg_1/prt_other.json", "part/msg_2/prt_2.json", "project/p2.json"}, report.Ignored)
		require.Equal(t, []string{"opencode-files"}, report.Formats)
	}
	_, err := importer.Import(t.Context(), s, archive.Path(filepath.Join(storage, "message")), importer.Options{})
	require.ErrorIs(t, err, archive.ErrUnknownFormat)
}
