package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/message"
)

// digests returns the digests of the exported histories: those of contexts that no other continues,
// and of branches.
func digests(t require.TestingT, s *lineage.Store) []string {
	seen := make(map[string]bool)
	var out []string
	for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		branches, err := thread.Branches(bg)
		require.NoError(t, err)
		for _, b := range branches {
			if b.Length == 0 {
				continue
			}
			d, err := s.View().Digest(bg, b.Head)
			require.NoError(t, err)
			if !seen[d.String()] {
				seen[d.String()] = true
				out = append(out, d.String())
			}
		}
	}
	return out
}

// says returns the texts of each branch's history, each history once.
func says(t require.TestingT, s *lineage.Store) []string {
	var out []string
	for thread, err := range s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		branches, err := thread.Branches(bg)
		require.NoError(t, err)
		for _, b := range branches {
			var output strings.Builder
			for e, err := range s.History(bg, b.Head, lineage.Window{}) {
				require.NoError(t, err)
				body, err := s.Original(bg, e)
				require.NoError(t, err)
				for _, m := range message.Decode(body, e.Type, e.Role) {
					fmt.Fprintf(&output, "%s %s:", m.Role, e.Name)
					for i := range m.Parts {
						fmt.Fprintf(&output, " %v %q", m.Parts[i].Kind, m.Parts[i].String())
					}
				}
			}
			if output.Len() > 0 && !slices.Contains(out, output.String()) {
				out = append(out, output.String())
			}
		}
	}
	return out
}

// importedFrom exports a store and imports the result into another one.
func importedFrom(t require.TestingT, from, to *lineage.Store, format export.Format, o export.Options) {
	var b bytes.Buffer
	require.NoError(t, export.Write(bg, from, &b, format, o))
	if format == export.ShareGPT {
		require.True(t, json.Valid(b.Bytes()))
	}
	report, err := importer.Import(bg, to, archive.Stream("", &b), importer.Options{Format: string(format)})
	require.NoError(t, err)
	require.Empty(t, report.Skipped)
	require.Empty(t, report.Repaired)
}

// Histories from these formats are the same after export and import.
func TestRoundTripOfArchives(t *testing.T) {
	calls := map[string]export.Format{
		"tau-bench/runs.json": export.OpenAI, "swe-agent/function_calling_simple.traj": export.OpenAI, "sharegpt/conversations.json": export.ShareGPT,
	}
	for _, file := range []string{
		"openai/chat.jsonl", "tau-bench/runs.json", "swe-agent/function_calling_simple.traj", "sharegpt/conversations.json",
		"oasst/trees.jsonl", "mt-bench-101/dialogues.jsonl", "hh-rlhf/pairs.jsonl", "prompt-logs",
	} {
		for _, format := range []export.Format{export.OpenAI, export.ShareGPT} {
			if format == export.ShareGPT && file == "openai/chat.jsonl" {
				continue // this format has no images
			}
			t.Run(fmt.Sprintf("%s as %s", file, format), func(t *testing.T) {
				from, to := storetest.NewTicking(t), storetest.NewTicking(t)
				_, err := importer.Import(bg, from, archive.Path(filepath.Join("..", "testdata", filepath.FromSlash(file))), importer.Options{})
				require.NoError(t, err)
				want := digests(t, from)
				require.NotEmpty(t, want)
				// Objects of other formats are translated.
				foreign := format == export.OpenAI && (file == "sharegpt/conversations.json" || file == "oasst/trees.jsonl")
				importedFrom(t, from, to, format, export.Options{AsGiven: !foreign})
				texts := says(t, from)
				require.NotEmpty(t, texts)
				for i := range texts {
					if foreign { // the API has no such role
						texts[i] = strings.ReplaceAll(texts[i], "narrator narrator:", "user user:")
					}
				}
				require.ElementsMatch(t, texts, says(t, to))
				if calls[file] != "" && calls[file] != format {
					return // the other format splits calls differently
				}
				if file == "oasst/trees.jsonl" {
					return // these formats have no labels
				}
				require.Subset(t, digests(t, to), want)
			})
		}
	}
}

func TestRoundTripOfAnyText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		from := storetest.NewTicking(t)
		for i := range rapid.IntRange(1, 3).Draw(rt, "threads") {
			thread, err := from.CreateThread(bg, lineage.ThreadOptions{SourceID: fmt.Sprint(i)})
			require.NoError(rt, err)
			main, err := thread.Active(bg)
			require.NoError(rt, err)
			items := rapid.SliceOfN(rapid.Custom(drawItem), 1, 6).Draw(rt, "items")
			refs, err := main.Extend(bg, items...)
			require.NoError(rt, err)
			for k := range rapid.IntRange(0, 2).Draw(rt, "branches") {
				at := rapid.SampledFrom(refs).Draw(rt, "at")
				c, err := thread.CreateBranch(bg, fmt.Sprint("b", k), lineage.BranchOptions{At: at})
				require.NoError(rt, err)
				_, err = c.Extend(bg, rapid.SliceOfN(rapid.Custom(drawItem), 0, 3).Draw(rt, "more")...)
				require.NoError(rt, err)
			}
		}
		for _, format := range []export.Format{export.OpenAI, export.ShareGPT} {
			to := storetest.NewTicking(t)
			importedFrom(rt, from, to, format, export.Options{AsGiven: true})
			require.ElementsMatch(rt, says(rt, from), says(rt, to), format)
			if format == export.OpenAI {
				require.ElementsMatch(rt, digests(rt, from), digests(rt, to))
			}
		}
	})
}

func drawItem(t *rapid.T) lineage.Item {
	item := lineage.Item{
		Role: rapid.SampledFrom([]string{"system", "user", "assistant", "tool", "narrator"}).Draw(t, "role"),
		Name: rapid.SampledFrom([]string{"", "", "ada", "b \"c\""}).Draw(t, "name"),
		Body: []byte(strings.ToValidUTF8(rapid.String().Draw(t, "text"), "?")),
	}
	if item.Role == "assistant" && rapid.Bool().Draw(t, "call") {
		arguments, err := json.Marshal(rapid.String().Draw(t, "arguments"))
		require.NoError(t, err)
		item.Type = "application/json"
		item.Body = []byte(`{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` + string(arguments) + `}}]}`)
	}
	return item
}

// The tools of a conversation are kept, also if they are so large that the import stores them
// separately. That data is not a history.
func TestToolsComeBack(t *testing.T) {
	for _, size := range []int{10, 10_000} {
		tools := `[{"type":"function","function":{"name":"f","description":"` + strings.Repeat("x", size) + `"}}]`
		line := `{"messages":[{"role":"user","content":"a"}],"tools":` + tools + "}\n" + `{"messages":[{"role":"user","content":"b"}],"tools":` + tools + "}\n"
		s := storetest.NewTicking(t)
		_, err := importer.Import(bg, s, archive.Stream("", strings.NewReader(line)), importer.Options{})
		require.NoError(t, err)
		require.ElementsMatch(t, strings.Split(line, "\n"), strings.Split(written(t, s, export.OpenAI, export.Options{AsGiven: true}), "\n"))
		require.NotContains(t, written(t, s, export.HTML, export.Options{}), "xxxx")
		stats, err := s.Stats(bg)
		require.NoError(t, err)
		require.Less(t, stats.UniqueBytes, uint64(size+200), "the tools are there once")
	}
}

// Lines that differ only in their weight keep it, also when they are imported again.
func TestWeightsOfEqualLines(t *testing.T) {
	const lines = `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello","weight":0}]}
{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello","weight":1}]}
{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}
{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello","weight":1}]}
`
	s := storetest.NewTicking(t)
	for round := range 2 {
		report, err := importer.Import(bg, s, archive.Stream("", strings.NewReader(lines)), importer.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 4, report.Conversations)
		require.EqualValues(t, 4*(1-round), report.NewConversations)
		var b bytes.Buffer
		require.NoError(t, export.Write(bg, s, &b, export.OpenAI, export.Options{AsGiven: true}))
		require.ElementsMatch(t, strings.Split(strings.TrimSpace(lines), "\n"), strings.Split(strings.TrimSpace(b.String()), "\n"))
	}
}

// Messages of this format come back byte for byte: also the older spelling of calls, calls without
// an id, and files.
func TestRoundTripOfCalls(t *testing.T) {
	const lines = `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"one"},{"type":"refusal","refusal":"no"}],"function_call":{"name":"f","arguments":"not JSON"}},{"role":"function","name":"f","content":"1"}]}
{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"function_call":{"arguments":"{\"a\": 1.0, \"a\":2}","name":"f"}},{"role":"function","name":"f","content":"{}"}]}
{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"f","arguments":{"a":1e2}}}]},{"role":"tool","content":"1"}]}
{"messages":[{"content":[{"file":{"file_data": "data:application/pdf;base64,JVBERi0=","filename":"a.pdf"},"type":"file"},{"type":"text","text":"read"}],"role":"user"}]}
`
	s := storetest.NewTicking(t)
	for round := range 2 {
		report, err := importer.Import(bg, s, archive.Stream("", strings.NewReader(lines)), importer.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 4*(1-round), report.NewConversations)
		require.ElementsMatch(t, strings.Split(lines, "\n"), strings.Split(written(t, s, export.OpenAI, export.Options{AsGiven: true}), "\n"))
	}
}

// ShareGPT data besides texts and roles is kept: a separate system prompt, and names of speakers.
func TestRoundTripOfShareGPT(t *testing.T) {
	const archived = `[
{"system":"Be brief.","conversations":[{"from":"human","value":"hi"},{"from":"function_call","value":"not JSON"},{"from":"function_call","value":"{\"name\": \"f\", \"arguments\": {}}"},{"from":"observation","value":"1"},{"from":"chatgpt","value":"hello"}]},
{"conversations":[{"from":"system","value":"Be brief."},{"from":"human","value":"hi"},{"from":"gpt","value":"hello"}]}
]
`
	s := storetest.NewTicking(t)
	for round := range 2 {
		report, err := importer.Import(bg, s, archive.Stream("", strings.NewReader(archived)), importer.Options{})
		require.NoError(t, err)
		require.EqualValues(t, 2*(1-round), report.NewConversations)
		var b bytes.Buffer
		require.NoError(t, export.Write(bg, s, &b, export.ShareGPT, export.Options{AsGiven: true}))
		var want, got []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(archived), &want))
		require.NoError(t, json.Unmarshal(b.Bytes(), &got))
		require.ElementsMatch(t, want, got)
	}
}
