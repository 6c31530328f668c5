package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/engine"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
	"github.com/lineage-store/lineage/sqladapter/project"
)

// imported imports an archive of package archive's tests.
func imported(t *testing.T, path string) *lineage.Store {
	s := lineagetest.New(t, lineage.Options{})
	_, err := importer.Import(t.Context(), s, archive.Path(filepath.Join("../../lineage/archive/testdata", path)), importer.Options{UserID: "ada"})
	require.NoError(t, err)
	return s
}

// entries yields the messages of a store, those that archives have beside them left out.
func entries(t *testing.T, s *lineage.Store, visit func(e *lineage.Entry, body []byte)) {
	for thread, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
		require.NoError(t, err)
		branches, err := thread.Branches(t.Context())
		require.NoError(t, err)
		for _, b := range branches {
			for e, err := range s.History(t.Context(), b.Head, lineage.Window{}) {
				require.NoError(t, err)
				body, err := s.Original(t.Context(), e)
				require.NoError(t, err)
				visit(e, body)
			}
		}
	}
}

// calls counts calls of tools by their ids, and results of calls.
func calls(history []message.Message) (called map[string]int, answered int) {
	called = make(map[string]int)
	for _, m := range history {
		for _, p := range m.Parts {
			if p.Kind == message.CallKind {
				called[p.CallID]++
			}
			if p.Kind == message.ResultKind && called[p.CallID] > 0 {
				answered++
			}
		}
	}
	return called, answered
}

// TestImportedConversationsGoOn imports archives in which agents call tools. Each message is
// read as what it says, and each conversation goes on with the model of any provider, its calls
// and their results in place.
func TestImportedConversationsGoOn(t *testing.T) {
	for path, withCalls := range map[string]bool{
		"tau-bench/runs.json": true, "swe-agent": true, "openai/chat.jsonl": true, "codex-made/rollout-base.jsonl": true,
		"claude-code-made": true, "claude-code-spotter": true, "claude-made": true, "chatgpt-made": false, "deepseek-made": true, "grok-made": false, "open-webui": false, "librechat": false, "sharegpt": true,
		"oasst/trees.jsonl": false, "hh-rlhf": false, "branch-files": false, "agents/pi": true, "agents/openclaw": true, "agents/copilot": true, "agents/qwen": true, "agents/gemini": true,
	} {
		t.Run(path, func(t *testing.T) {
			s := imported(t, path)
			entries(t, s, func(e *lineage.Entry, body []byte) {
				if e.Type != content.TypeJSON {
					return
				}
				for _, m := range message.Decode(body, e.Type, e.Role) {
					for _, p := range m.Parts {
						require.NotEqual(t, message.DataKind, p.Kind, "%s", body)
						require.Contains(t, e.Excerpt(), strings.TrimRight(p.Text, "\n"))
					}
				}
				require.NotEqual(t, string(body), e.Excerpt())
			})
			answered := 0
			for thread, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
				require.NoError(t, err)
				info, err := thread.Info(t.Context())
				require.NoError(t, err)
				id := info.SourceID
				if id == "" {
					id = thread.ID().String()
				}
				e, err := engine.Open(t.Context(), chat.On(s), engine.Options{ChatID: id, UserID: info.UserID})
				require.NoError(t, err)
				require.NoError(t, e.Set(engine.User("Go on.")))
				_, err = e.Save(t.Context())
				require.NoError(t, err)
				r, err := e.Resolve(t.Context(), engine.ResolveOptions{})
				require.NoError(t, err)
				_, n := calls(r.History)
				answered += n
				for _, d := range message.Dialects() {
					out, err := r.Encode(d)
					require.NoError(t, err)
					require.NoError(t, messagetest.Check(d, out.Items), d)
					for _, l := range out.Losses {
						require.False(t, withCalls && strings.Contains(l.Reason, "result without a call"), "%s: %+v", d, l)
					}
				}
			}
			require.Equal(t, withCalls, answered > 0, "calls that have results")
		})
	}
}

// TestImportedMessagesAreCarried carries archives to other stores by bundles and by a database.
// The bytes of each message are the archive's there too.
func TestImportedMessagesAreCarried(t *testing.T) {
	given := func(s *lineage.Store) map[string]bool {
		out := make(map[string]bool)
		entries(t, s, func(e *lineage.Entry, body []byte) {
			if e.Type == content.TypeJSON {
				out[string(body)] = true
			}
		})
		return out
	}
	for _, path := range []string{"tau-bench/runs.json", "claude-code-made", "claude-made", "chatgpt-made", "open-webui", "sharegpt", "oasst/trees.jsonl"} {
		t.Run(path, func(t *testing.T) {
			s := imported(t, path)
			var b bytes.Buffer
			_, err := bundle.Write(t.Context(), s, &b, bundle.WriteOptions{})
			require.NoError(t, err)
			carried := lineagetest.New(t, lineage.Options{})
			_, err = bundle.Import(t.Context(), carried, &b, bundle.ImportOptions{})
			require.NoError(t, err)
			require.Equal(t, given(s), given(carried))

			db, again := sqlChats(t), lineagetest.New(t, lineage.Options{})
			_, err = (&project.Projector{Store: s, DB: db}).Run(t.Context())
			require.NoError(t, err)
			for d, err := range project.Compare(t.Context(), db, s, project.CompareOptions{}) {
				require.NoError(t, err)
				require.Fail(t, d.String())
			}
			importInto(t, db, again)
			if path != "claude-made" { // files of a message are beside it in a database
				require.Subset(t, given(again), given(s))
			}
		})
	}
}

// TestExportsGiveBackMessages imports archives and writes them in their format. The objects of
// messages are those of the archive, byte for byte.
func TestExportsGiveBackMessages(t *testing.T) {
	const openAI = `{"messages":[{"role":"system", "content":"a\/b"},{"role":"user","content":[{"type":"text","text":"\u00e9é","cache_control":{"type":"ephemeral"}}],"n":1.0,"m":1e2},` +
		`{"role":"assistant","content":null,"tool_calls":[ {"id":"c","type":"function","function":{"name":"f","arguments":"{ }"}}],"id":"x","big":9223372036854775808},` +
		`{"tool_call_id":"c","role":"tool","name":"f","content":"half \ud83d","content":"twice"},{"content":"so","role":"assistant","agent":"main","thought":"hm","weight":0},` +
		`{"role":"assistant","content":null,"x":1},{"role":"tool","content":[],"tool_call_id":"d"},{"role":"user","content":""}]}` + "\n"
	const shareGPT = "[\n" + `{"conversations":[{"value":"a\/b", "from":"human"},{"from":"function_call","value":"{\"name\": \"f\"}"},{"from":"observation","value":"\u00e9é","n":1.0},{"from":"bard","value":"half \ud83d"}]}` + "\n]\n"
	for format, text := range map[export.Format]string{export.OpenAI: openAI, export.ShareGPT: shareGPT} {
		s := lineagetest.New(t, lineage.Options{})
		_, err := importer.Import(t.Context(), s, archive.Stream("", strings.NewReader(text)), importer.Options{})
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, export.Write(t.Context(), s, &b, format, export.Options{AsGiven: true}))
		require.Equal(t, text, b.String())
	}
	// Line breaks between members are not for a line of JSON.
	pretty, err := os.ReadFile("../../lineage/archive/testdata/swe-agent/function_calling_simple.traj")
	require.NoError(t, err)
	s := lineagetest.New(t, lineage.Options{})
	_, err = importer.Import(t.Context(), s, archive.Stream("", bytes.NewReader(pretty)), importer.Options{})
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, export.Write(t.Context(), s, &b, export.OpenAI, export.Options{AsGiven: true}))
	require.Equal(t, 1, strings.Count(b.String(), "\n"))
}
