package importer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// messageFixtures are the fixtures of formats with message lists.
var messageFixtures = []struct {
	path, format            string
	conversations, messages int64
	// spans is the number of stored messages, less than messages if histories have common
	// beginnings.
	spans uint64
}{
	{"openai/chat.jsonl", "openai", 4, 11, 0},
	{"tau-bench/runs.json", "openai", 4, 102, 0},
	{"swe-agent/function_calling_simple.traj", "openai", 1, 12, 0},
	{"sharegpt/conversations.json", "sharegpt", 2, 8, 8},
	{"oasst/trees.jsonl", "oasst", 3, 0, 0},
	{"oasst/messages.jsonl", "oasst", 3, 0, 0},
	{"mt-bench-101/dialogues.jsonl", "turns", 6, 0, 0},
	{"hh-rlhf/pairs.jsonl", "preferences", 6, 0, 0},
	{"prompt-logs", "prompt-logs", 1, 0, 0},
	{"branch-files", "branch-files", 1, 6, 4},
}

func fixture(path string) string { return filepath.Join("../testdata", filepath.FromSlash(path)) }

// readAll reads an archive without storing it.
func readAll(t testing.TB, src archive.Source, o importer.Options) (conversations []*archive.Conversation, damages []*archive.Damage) {
	t.Helper()
	for c, err := range archive.Read(context.Background(), src, archive.ReadOptions{Format: o.Format, Formats: formats.All(), Limits: o.Limits}) {
		var d *archive.Damage
		if err != nil {
			require.ErrorAs(t, err, &d)
			damages = append(damages, d)
			continue
		}
		conversations = append(conversations, c)
	}
	return conversations, damages
}

// shown writes conversations for a golden file.
func shown(conversations []*archive.Conversation, damages []*archive.Damage) string {
	var b strings.Builder
	brief := func(body []byte) string {
		if len(body) > 120 {
			return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(string(body[:120]), "?"), len(body))
		}
		return fmt.Sprintf("%q", body)
	}
	for i, c := range conversations {
		fmt.Fprintf(&b, "conversation %d source=%q title=%q user=%q model=%q current=%q forked=%q more=%v\n", i, c.SourceID, c.Title, c.UserID, c.Model, c.Current, c.ForkedFrom, c.More)
		if !c.Created.IsZero() || !c.Updated.IsZero() {
			fmt.Fprintf(&b, "  created=%v updated=%v\n", c.Created, c.Updated)
		}
		if c.Metadata != nil {
			fmt.Fprintf(&b, "  metadata %s\n", brief(c.Metadata))
		}
		for _, n := range c.Nodes {
			fmt.Fprintf(&b, "  %s", n.Role)
			for _, f := range []struct{ name, value string }{
				{"name", n.Name}, {"id", n.ID}, {"parent", n.Parent}, {"model", n.Model}, {"user", n.UserID}, {"branch", n.Branch}, {"aside", n.Aside}, {"type", n.Type},
			} {
				if f.value != "" {
					fmt.Fprintf(&b, " %s=%q", f.name, f.value)
				}
			}
			if n.Root {
				b.WriteString(" root")
			}
			if !n.Created.IsZero() {
				fmt.Fprintf(&b, " %v", n.Created)
			}
			fmt.Fprintf(&b, "\n    %s\n", brief(n.Body))
			if n.Metadata != nil {
				fmt.Fprintf(&b, "    metadata %s\n", brief(n.Metadata))
			}
			for _, a := range n.Attachments {
				fmt.Fprintf(&b, "    file %q %s %s\n", a.Filename, a.Type, brief(a.Body))
			}
		}
		for _, d := range c.Repairs {
			fmt.Fprintf(&b, "  repair %v\n", d)
		}
	}
	for _, d := range damages {
		fmt.Fprintf(&b, "damage %v\n", d)
	}
	return b.String()
}

func goldenText(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("../testdata", "golden", name)
	if os.Getenv("LINEAGE_UPDATE_GOLDEN") == "1" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestMessageFormatsGolden(t *testing.T) {
	for _, f := range messageFixtures {
		t.Run(f.path, func(t *testing.T) {
			conversations, damages := readAll(t, archive.Path(fixture(f.path)), importer.Options{Format: f.format})
			damages = slices.DeleteFunc(damages, func(d *archive.Damage) bool { return filepath.Base(d.At.File) == "LICENSE" })
			goldenText(t, strings.ReplaceAll(f.path, "/", "_")+".txt", shown(conversations, damages))
		})
	}
}

func TestMessageFormatsAreDetected(t *testing.T) {
	for _, f := range messageFixtures {
		info, err := os.Stat(fixture(f.path))
		require.NoError(t, err)
		if info.IsDir() {
			continue // below, by importing them
		}
		b, err := os.ReadFile(fixture(f.path))
		require.NoError(t, err)
		head := archive.Head{Name: filepath.Base(f.path), Bytes: b[:min(len(b), archive.HeadSize)]}
		for _, format := range formats.All() {
			if format.Detect(head) {
				require.Equal(t, f.format, format.Name, f.path)
			}
		}
	}
}

// Importing twice adds nothing, and the stored content is what was read.
func TestMessageFormatsImport(t *testing.T) {
	ctx := context.Background()
	for _, f := range messageFixtures {
		t.Run(f.path, func(t *testing.T) {
			s := storetest.New(t)
			report, err := importer.Import(ctx, s, archive.Path(fixture(f.path)), importer.Options{})
			require.NoError(t, err)
			require.Equal(t, []string{f.format}, report.Formats)
			require.Empty(t, report.Skipped)
			require.Empty(t, report.Repaired)
			require.Equal(t, f.conversations, report.Conversations)
			if f.messages > 0 {
				require.Equal(t, f.messages, report.Messages)
			}
			if f.spans > 0 {
				stats, err := s.Stats(ctx)
				require.NoError(t, err)
				require.Equal(t, f.spans, stats.Spans)
			}
			conversations, _ := readAll(t, archive.Path(fixture(f.path)), importer.Options{Format: f.format})
			require.Subset(t, historiesIn(t, s), historiesOf(conversations))

			head, err := s.View().Head(ctx)
			require.NoError(t, err)
			again, err := importer.Import(ctx, s, archive.Path(fixture(f.path)), importer.Options{})
			require.NoError(t, err)
			require.Zero(t, again.NewMessages)
			require.Zero(t, again.NewConversations)
			now, err := s.View().Head(ctx)
			require.NoError(t, err)
			require.Equal(t, head, now, "importing again made commits")
		})
	}
}

// historiesOf returns the path to each leaf of conversations as text.
func historiesOf(conversations []*archive.Conversation) []string {
	var out []string
	for _, c := range conversations {
		paths := make([]string, len(c.Nodes))
		byID := make(map[string]int)
		leaf := make(map[int]bool)
		for i, n := range c.Nodes {
			parent := i - 1
			if at, ok := byID[n.Parent]; ok && n.Parent != "" {
				parent = at
			}
			if n.Root {
				parent = -1
			}
			name := n.Name
			if name == n.Role {
				name = ""
			}
			if parent >= 0 {
				paths[i] = paths[parent]
				leaf[parent] = false
			}
			paths[i] += fmt.Sprintf("%s/%s/%q\n", n.Role, name, n.Body)
			leaf[i] = true
			if n.ID != "" {
				byID[n.ID] = i
			}
		}
		for i, one := range leaf {
			if one {
				out = append(out, paths[i])
			}
		}
	}
	return out
}

// historiesIn returns the history of each context of a store, with original messages.
func historiesIn(t testing.TB, s *lineage.Store) []string {
	return writtenHistories(t, s, func(e *lineage.Entry) string {
		body, err := s.Original(context.Background(), e)
		require.NoError(t, err)
		return string(body)
	})
}

// textsIn is historiesIn with the texts of messages.
func textsIn(t testing.TB, s *lineage.Store) []string {
	return writtenHistories(t, s, func(e *lineage.Entry) string {
		text, err := s.Text(context.Background(), e)
		require.NoError(t, err)
		return text
	})
}

func writtenHistories(t testing.TB, s *lineage.Store, write func(*lineage.Entry) string) []string {
	t.Helper()
	ctx := context.Background()
	var out []string
	for thread, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		for c, err := range thread.Contexts(ctx) {
			require.NoError(t, err)
			text := ""
			for e, err := range c.Entries(ctx, lineage.Window{}) {
				require.NoError(t, err)
				if e.Kind != lineage.Message {
					continue
				}
				name := e.Name
				if name == e.Role {
					name = ""
				}
				text += fmt.Sprintf("%s/%s/%q\n", e.Role, name, write(e))
			}
			out = append(out, text)
		}
	}
	return out
}

// Both variants of message trees have the same content, in different objects.
func TestBothTreeFormats(t *testing.T) {
	ctx := context.Background()
	trees, messages := storetest.New(t), storetest.New(t)
	_, err := importer.Import(ctx, trees, archive.Path(fixture("oasst/trees.jsonl")), importer.Options{})
	require.NoError(t, err)
	_, err = importer.Import(ctx, messages, archive.Path(fixture("oasst/messages.jsonl")), importer.Options{})
	require.NoError(t, err)
	require.ElementsMatch(t, textsIn(t, trees), textsIn(t, messages))
	both, err := importer.Import(ctx, trees, archive.Path(fixture("oasst/messages.jsonl")), importer.Options{})
	require.NoError(t, err)
	require.Zero(t, both.NewConversations)
}

// A message per line, each with its parent.
func TestTreeOfSingleMessages(t *testing.T) {
	ctx := context.Background()
	lines := `{"message_id":"r","parent_id":null,"text":"hi","role":"prompter","message_tree_id":"r"}
{"message_id":"a","parent_id":"r","text":"hello","role":"assistant","message_tree_id":"r"}
{"message_id":"b","parent_id":"r","text":"hey","role":"assistant","message_tree_id":"r"}
{"message_id":"c","parent_id":"b","text":"ok","role":"prompter","message_tree_id":"r"}
`
	for name, text := range map[string]string{"with trees": lines, "without": strings.ReplaceAll(lines, `,"message_tree_id":"r"`, "")} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			report, err := importer.Import(ctx, s, archive.Stream("m.jsonl", strings.NewReader(text)), importer.Options{})
			require.NoError(t, err)
			require.Empty(t, report.Skipped)
			require.EqualValues(t, 4, report.NewMessages)
			require.EqualValues(t, 1, report.NewConversations)
			got := textsIn(t, s)
			require.Contains(t, got, "user//\"hi\"\nassistant//\"hello\"\n")
			require.Contains(t, got, "user//\"hi\"\nassistant//\"hey\"\nuser//\"ok\"\n")
		})
	}
}

// The files of a session become the branches of a thread.
func TestBranchFilesAreOneThread(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	_, err := importer.Import(ctx, s, archive.Path(fixture("branch-files")), importer.Options{})
	require.NoError(t, err)
	thread, err := s.FindThread(ctx, "session-1")
	require.NoError(t, err)
	branches, err := thread.Branches(ctx)
	require.NoError(t, err)
	var names []string
	for _, b := range branches {
		names = append(names, fmt.Sprintf("%s %d %v", b.Name, b.Length, b.Active))
	}
	require.ElementsMatch(t, []string{"main 3 true", "try 3 false"}, names)

	// Importing the folder itself gives the same result as importing its parent.
	again, err := importer.Import(ctx, s, archive.Path(fixture("branch-files/session-1")), importer.Options{})
	require.NoError(t, err)
	require.Zero(t, again.NewConversations)
	require.Zero(t, again.NewMessages)
}

// A branch that was continued in the store stays where it is, whether or not the archive has more of it.
func TestBranchContinuedInTheStore(t *testing.T) {
	ctx := context.Background()
	s, session := storetest.New(t), filepath.Join(t.TempDir(), "s")
	require.NoError(t, os.Mkdir(session, 0o755))
	write := func(id string, texts ...string) {
		for i := range texts {
			texts[i] = fmt.Sprintf(`{"role":"user","content":%q}`, texts[i])
		}
		file := fmt.Sprintf(`{"id":%q,"name":%[1]q,"messages":[%s],"createdAt":"2025-05-01T10:00:00.000Z"}`, id, strings.Join(texts, ","))
		require.NoError(t, os.WriteFile(filepath.Join(session, id+".json"), []byte(file), 0o644))
	}
	load := func() map[string][]string {
		_, err := importer.Import(ctx, s, archive.Path(session), importer.Options{})
		require.NoError(t, err)
		thread, err := s.FindThread(ctx, "s")
		require.NoError(t, err)
		branches, err := thread.Branches(ctx)
		require.NoError(t, err)
		said := make(map[string][]string)
		for _, b := range branches {
			for e, err := range s.History(ctx, b.Head, lineage.Window{}) {
				require.NoError(t, err)
				said[b.Name] = append(said[b.Name], e.Excerpt())
			}
		}
		return said
	}
	write("main", "a", "b")
	write("x", "a", "X")
	load()
	thread, err := s.FindThread(ctx, "s")
	require.NoError(t, err)
	for _, name := range []string{"main", "x"} {
		on, err := thread.BranchContext(ctx, name)
		require.NoError(t, err)
		_, err = on.Extend(ctx, lineage.User("here"))
		require.NoError(t, err)
	}
	want := map[string][]string{"main": {"a", "b", "here"}, "x": {"a", "X", "here"}}
	require.Equal(t, want, load())
	write("x", "a", "X", "there")
	want["main-v3"] = []string{"a", "X", "there"}
	require.Equal(t, want, load())
	require.Equal(t, want, load())
}

func TestDamagedItemsAreSkipped(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name, format, input     string
		conversations, messages int64
		skipped, repaired       []string
	}{
		{
			"openai", "openai", `{"messages":[{"role":"user","content":"a"},7,{"content":"nobody"},{"role":"assistant","content":"b"}]}
{"messages":
{"messages":"none"}
[]
{"messages":[{"role":"user","content":"c"}]}
`, 2, 3,
			[]string{
				"line 1 (byte 0), message 2: malformed: message is not an object", "line 1 (byte 0), message 3: malformed: message without a role",
				"line 2 (byte 103)", "line 3 (byte 116): malformed: no list", "line 4 (byte 136): malformed: no list",
			}, nil,
		},
		{
			"sharegpt", "sharegpt", `[{"conversations":[{"from":"human","value":"a"},{"value":"b"},{"from":"gpt"},"x",{"from":"gpt","value":["not","text"]}]},{"conversations":3},{"other":1}]`,
			1, 2,
			[]string{
				"turn 2: malformed: turn without a speaker", "turn 3: malformed: turn without a value", "turn 4: malformed: turn is not an object",
				"item 2 (byte 121): malformed: no conversations", "item 3 (byte 141): malformed: no conversations",
			}, nil,
		},
		{
			"oasst", "oasst", `{"message_tree_id":"t","tree_state":"x","prompt":{"message_id":"t","text":"a","role":"prompter","replies":[{"message_id":"u","role":"assistant"},{"text":"no id","role":"assistant"},{"message_id":"v","text":"b","role":"assistant","parent_id":"elsewhere","replies":null}]}}
{"message_tree_id":"t2","prompt":{}}
{"message_id":"w","parent_id":"nowhere","text":"lost","role":"assistant"}
"text"
`, 2, 3,
			[]string{"reply to t: malformed: message without a text", "reply to t: malformed: message without an id", "line 2", "line 4"},
			[]string{`its parent "nowhere" is missing`},
		},
		{
			"preferences", "preferences", `{"chosen":"\n\nHuman: a\n\nAssistant: b","rejected":"\n\nHuman: a\n\nAssistant: c"}
{"chosen":"\n\nHuman: a"}
{"chosen":1,"rejected":2}
{"chosen":"","rejected":""}
{"prompt":"Why?","chosen":"Because.","rejected":[{"role":"assistant","content":"No."}],"score":1e400}
`, 2, 8,
			[]string{"line 2", "line 3", "line 4"}, nil,
		},
		{
			"turns", "turns", `{"history":[{"user":"a","bot":"b"},1,{"user":"c"},{"bot":{"x":1}},{"note":"d"}]}
{"history":{}}
`, 1, 4,
			[]string{"turn 2: malformed: turn is not an object", "turn 5: malformed: turn without text", "line 2"}, nil,
		},
		{
			"branch files", "branch-files", `{"id":"main","name":"m","messages":[{"role":"user","content":"a"},{"content":"b"}],"createdAt":"2025-01-01T00:00:00Z"}
{"name":"m","messages":[],"createdAt":1}
{"id":"x","name":"m","messages":{},"createdAt":1}
`, 1, 1,
			[]string{"item 2", "item 3", "message 2: malformed: message without a role"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := storetest.New(t)
			report, err := importer.Import(ctx, s, archive.Stream("in", strings.NewReader(c.input)), importer.Options{Format: c.format})
			require.NoError(t, err)
			require.Equal(t, c.conversations, report.Conversations, "%v", report.Skipped)
			require.Equal(t, c.messages, report.Messages, "%v", report.Repaired)
			positions := func(damages []*archive.Damage) []string {
				var out []string
				for _, d := range damages {
					require.ErrorIs(t, d, archive.ErrMalformed)
					out = append(out, d.Error())
				}
				return out
			}
			skipped, repaired := positions(report.Skipped), positions(report.Repaired)
			require.Len(t, skipped, len(c.skipped), "%q", skipped)
			for i := range c.skipped {
				require.Contains(t, skipped[i], c.skipped[i])
			}
			require.Len(t, repaired, len(c.repaired), "%q", repaired)
			for i := range c.repaired {
				require.Contains(t, repaired[i], c.repaired[i])
			}
		})
	}
}

// A message of a run that is nested too deeply, or has a number out of range, affects no other run.
func TestHostileValues(t *testing.T) {
	ctx := context.Background()
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	nested := `{"message_id":"x","text":"t","role":"assistant","replies":[`
	for name, c := range map[string]struct{ format, bad, good string }{
		"deep":       {"openai", `{"messages":[{"role":"user","content":` + deep + `}]}`, `{"messages":[{"role":"user","content":"ok"}]}`},
		"deep tree":  {"oasst", strings.Repeat(nested, 2000) + strings.Repeat("]}", 2000), `{"message_id":"y","text":"ok","role":"prompter"}`},
		"deep turns": {"turns", `{"history":[{"user":` + deep + `}]}`, `{"history":[{"user":"ok"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.New(t)
			report, err := importer.Import(ctx, s, archive.Stream("in", strings.NewReader(c.bad+"\n"+c.good+"\n")), importer.Options{Format: c.format})
			require.NoError(t, err)
			require.Len(t, report.Skipped, 1)
			require.ErrorIs(t, report.Skipped[0], archive.ErrTooDeep)
			require.EqualValues(t, 1, report.Messages)
		})
	}
	t.Run("numbers", func(t *testing.T) {
		s := storetest.New(t)
		huge := `{"messages":[{"role":"user","content":"a","timestamp":1e999,"n":` + strings.Repeat("9", 5000) + `},{"role":"user","content":-1e999999}],"task_id":1e400}`
		report, err := importer.Import(ctx, s, archive.Stream("in", strings.NewReader(huge)), importer.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 2, report.NewMessages)
	})
	t.Run("invalid UTF-8", func(t *testing.T) {
		s := storetest.New(t)
		for _, format := range []struct{ name, input string }{
			{"openai", "{\"messages\":[{\"role\":\"us\xffer\",\"name\":\"\xfe\",\"id\":\"\xfd\",\"model\":\"\xfc\",\"content\":\"a\xffb\",\"x\xff\":\"\xff\"}],\"title\":\"\xff\",\"model\":\"\xff\"}"},
			{"sharegpt", "{\"conversations\":[{\"from\":\"\xff\",\"value\":\"\xff\",\"name\":\"\xfe\"}],\"title\":\"\xff\"}"},
			{"oasst", "{\"message_id\":\"\xff\",\"text\":\"\xff\",\"role\":\"\xfe\",\"user_id\":\"\xff\",\"message_tree_id\":\"\xfd\"}"},
			{"turns", "{\"task\":\"\xff\",\"history\":[{\"user\":\"\xff\",\"\xff\":1}]}"},
			{"branch-files", "{\"id\":\"\xff\",\"name\":\"\xff\",\"messages\":[{\"role\":\"\xff\",\"content\":\"\xff\",\"\xff\":\"\xff\"}]}"},
		} {
			for round := range 2 {
				before, err := s.View().Head(ctx)
				require.NoError(t, err)
				report, err := importer.Import(ctx, s, archive.Stream("in", strings.NewReader(format.input)), importer.Options{Format: format.name})
				require.NoError(t, err)
				require.EqualValues(t, 1-round, report.NewMessages, format.name)
				after, err := s.View().Head(ctx)
				require.NoError(t, err)
				require.True(t, round == 0 || before == after, "%s: importing again made commits", format.name)
			}
		}
	})
}

// Of duplicate ids, only the first is kept.
func TestRepeatedIDs(t *testing.T) {
	s := storetest.New(t)
	report, err := importer.Import(context.Background(), s,
		archive.Stream("in", strings.NewReader(`{"messages":[{"id":"1","role":"user","content":"a"},{"id":"1","role":"user","content":"b"}]}`)), importer.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 2, report.NewMessages)
	require.Contains(t, textsIn(t, s), "user//\"a\"\nuser//\"b\"\n")
}

// Items of the Responses API have a type in place of a role.
func TestListsOfResponsesItems(t *testing.T) {
	items := []string{
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"2 + 2?"}]}`,
		`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Easy."}]}`,
		`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"add","arguments":"{\"a\": 2, \"a\": 2.0}"}`,
		`{"type":"function_call_output","call_id":"call_1","output":"4"}`,
		`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"4.","annotations":[]}]}`,
	}
	s := storetest.New(t)
	line := `{"messages":[` + strings.Join(items, ",") + `,{"type":"separator"}]}`
	report, err := importer.Import(context.Background(), s, archive.Stream("", strings.NewReader(line)), importer.Options{})
	require.NoError(t, err)
	require.Len(t, report.Skipped, 1)
	require.ErrorContains(t, report.Skipped[0], "message 6: malformed: message without a role")
	require.Equal(t, []string{
		fmt.Sprintf("user//%q\nassistant//%q\nassistant//%q\ntool//%q\nassistant//%q\n", items[0], items[1], items[2], items[3], items[4]),
	}, historiesIn(t, s))
}

func TestFileThatIsOneListOfMessages(t *testing.T) {
	for _, input := range []string{
		`[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`,
		`[[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]]`,
		"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"assistant\",\"content\":\"b\"}\n",
	} {
		s := storetest.New(t)
		report, err := importer.Import(context.Background(), s, archive.Stream("", strings.NewReader(input)), importer.Options{})
		require.NoError(t, err, input)
		require.EqualValues(t, 1, report.Conversations)
		require.Contains(t, textsIn(t, s), "user//\"a\"\nassistant//\"b\"\n")
	}
}

// A file that is a single list is held in memory, so its size is limited like an item's.
func TestListOfMessagesThatIsTooLarge(t *testing.T) {
	line := `{"role":"user","content":"` + strings.Repeat("x", 400) + `"}` + "\n"
	s := storetest.New(t)
	report, err := importer.Import(context.Background(), s, archive.Stream("in", strings.NewReader(strings.Repeat(line, 20))),
		importer.Options{Format: "openai", Limits: archive.Limits{Item: 5000}})
	require.NoError(t, err)
	require.EqualValues(t, 11, report.Messages)
	require.Len(t, report.Skipped, 1)
	require.ErrorIs(t, report.Skipped[0], archive.ErrTooLarge)
	require.Contains(t, report.Skipped[0].Error(), "line 12")
}

func TestPromptLogsWithGaps(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("prompt_001.log", "rules\n\n----------\n\nask")
	write("response_001.log", "answer <run")
	write("prompt_002.log", "rules\r\n\r\n----------\r\n\r\nask\r\n\r\n----------\r\n\r\nanswer <run>\r\n\r\n----------\r\n\r\nmore")
	write("response_007.log", "to nothing")
	write("prompt_x.log", "not a request")
	s := storetest.New(t)
	report, err := importer.Import(context.Background(), s, archive.Path(dir), importer.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"prompt_x.log"}, report.Ignored)
	require.Len(t, report.Skipped, 1)
	require.Contains(t, report.Skipped[0].Error(), "response_007.log")
	got := historiesIn(t, s)
	require.Contains(t, got, "system//\"rules\"\nuser//\"ask\"\nassistant//\"answer <run\"\n")
	require.Contains(t, got, "system//\"rules\"\nuser//\"ask\"\nassistant//\"answer <run>\"\nuser//\"more\"\n")
}

// Similar files of other formats are not mistaken for these.
func TestDetectionOfMessageFormats(t *testing.T) {
	long := strings.Repeat("x", 2*archive.HeadSize)
	for input, want := range map[string]string{
		`{"messages":[{"role":"user","content":"` + long:                     "openai",
		`[{"info":{"a":[1]},"traj":[{"content":"` + long:                     "openai",
		`{"task":"` + long + `","messages":[{"role":"user"}]}`:               "",
		`{"trajectory":[{"action":"a","observation":"b","response":"` + long: "openai",
		`{"items":[{"from":"human","value":"` + long:                         "sharegpt",
		`{"id":"x","conversations":[{"value":"v","from":"human"}]}`:          "sharegpt",
		`{"chosen":"` + long:                       "preferences",
		`{"prompt":"p","chosen":[],"rejected":[]}`: "preferences",
		`{"message_tree_id":"t","tree_state":"s","prompt":{"message_id":"` + long:             "oasst",
		`[{"message_id":"m","parent_id":null,"role":"prompter","text":"t"}]`:                  "oasst",
		`{"history":[{"user":"` + long:                                                        "turns",
		`{"id":"main","name":"Main","messages":[{"role":"user","content":"` + long:            "branch-files",
		`{"id":"main","name":"Main","messages":[],"createdAt":"2025-01-01T00:00:00Z"}`:        "branch-files",
		`{"messages":[{"sender":"user","text":"\"conversations\" \"from\" \"value\""}]}`:      "",
		`{"from":"a","value":"b"}`:                                                            "",
		`{"history":{"user":1}}`:                                                              "",
		`{"text":"{\"chosen\":1,\"rejected\":2}"}`:                                            "",
		"\xef\xbb\xbf  \n[ {\"messages\":[{\"role\":\"user\",\"content\":\"with a mark\"}]}]": "openai",
		``:        "",
		`[`:       "",
		`[[]]`:    "",
		`{"a`:     "",
		`nothing`: "",
		// Sessions of another agent with similar lines.
		`{"type":"conversation","id":"s","timestamp":"2026-01-01T00:00:00Z","folder":"/w"}` + "\n" +
			`{"type":"entry","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}`: "",
	} {
		head := archive.Head{Bytes: []byte(input)[:min(len(input), archive.HeadSize)]}
		got := ""
		for _, format := range formats.All() {
			if format.Detect(head) {
				got = format.Name
				break
			}
		}
		require.Equal(t, want, got, "%.100s", input)
	}
}

// Detection does not count as reading.
func TestProgressOfFolders(t *testing.T) {
	dir := t.TempDir()
	input := `{"messages":[{"role":"user","content":"a"}]}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.json"), []byte(input), 0o600))
	var read int64
	_, err := importer.Import(context.Background(), storetest.New(t), archive.Path(dir), importer.Options{Progress: func(p importer.Progress) { read = p.Read }})
	require.NoError(t, err)
	require.EqualValues(t, len(input), read)
}

// A conversation without an id is recognised by its content, and changes made to it in the store
// are kept.
func TestConversationWithoutID(t *testing.T) {
	ctx := context.Background()
	s := storetest.New(t)
	const pair = `{"chosen":"\n\nHuman: a\n\nAssistant: b","rejected":"\n\nHuman: a\n\nAssistant: c","score":%d}` + "\n"
	add := func(scores ...int) importer.Report {
		var lines strings.Builder
		for _, n := range scores {
			fmt.Fprintf(&lines, pair, n)
		}
		report, err := importer.Import(ctx, s, archive.Stream("", strings.NewReader(lines.String())), importer.Options{})
		require.NoError(t, err)
		return report
	}
	require.EqualValues(t, 1, add(1).NewConversations)
	var thread *lineage.Thread
	for found, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		thread = found.Thread
	}
	at, err := thread.Branch(ctx, "")
	require.NoError(t, err)
	require.Equal(t, lineage.MainBranch, at.Name)
	info, err := thread.Info(ctx)
	require.NoError(t, err)
	require.JSONEq(t, `{"score":1,"_archive":{"format":"preferences"}}`, string(info.Metadata))
	require.Regexp(t, "^sha256:[0-9a-f]{20}$", info.SourceID)

	require.NoError(t, thread.Switch(ctx, "rejected"))
	require.NoError(t, thread.Update(ctx, func(i *lineage.ThreadInfo) error { i.Title = "mine"; return nil }))
	before, err := s.View().Head(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 0, add(1).NewConversations)
	at, err = thread.Branch(ctx, "")
	require.NoError(t, err)
	require.Equal(t, "rejected", at.Name)
	after, err := s.View().Head(ctx)
	require.NoError(t, err)
	require.Equal(t, before, after)
	require.EqualValues(t, 1, add(2).NewConversations) // different metadata: a different conversation
	require.EqualValues(t, 2, add(1, 2, 1, 1).NewConversations, "equal ones of a file are several")
	require.EqualValues(t, 0, add(1, 1, 1, 2).NewConversations)
}
