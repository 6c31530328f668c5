package export_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/export"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

func prompt(text string) lineage.Overrides { return lineage.Overrides{SystemPrompt: &text} }

func newThread(t testing.TB, s *lineage.Store, o lineage.Overrides) (*lineage.Thread, *lineage.Context) {
	t.Helper()
	thread, err := s.CreateThread(bg, lineage.ThreadOptions{Overrides: o})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	return thread, main
}

// lines returns each conversation of an export as "role: text" parts.
func lines(t testing.TB, s *lineage.Store, format export.Format) (texts []string) {
	t.Helper()
	type message struct{ Role, Content, From, Value string }
	type conversation struct{ Messages, Conversations []message }
	var all []conversation
	out := written(t, s, format, export.Options{})
	if format == export.ShareGPT {
		require.NoError(t, json.Unmarshal([]byte(out), &all))
	} else {
		for line := range strings.Lines(out) {
			var c conversation
			require.NoError(t, json.Unmarshal([]byte(line), &c))
			all = append(all, c)
		}
	}
	names := map[string]string{"human": "user", "gpt": "assistant"}
	for _, c := range all {
		var parts []string
		for _, m := range append(c.Messages, c.Conversations...) {
			role := m.Role + m.From
			if names[role] != "" {
				role = names[role]
			}
			parts = append(parts, role+": "+m.Content+m.Value)
		}
		texts = append(texts, strings.Join(parts, " | "))
	}
	return texts
}

func TestSystemPromptOfAContext(t *testing.T) {
	erased := lineage.System("Be erased.")
	for name, test := range map[string]struct {
		prompt string
		says   []lineage.Item
		want   string
	}{
		"it comes first":                         {"Be brief.", []lineage.Item{lineage.User("Hi")}, "system: Be brief. | user: Hi"},
		"it is there already":                    {"Be brief.", []lineage.Item{lineage.System("Be brief."), lineage.User("Hi")}, "system: Be brief. | user: Hi"},
		"another is there":                       {"Be brief.", []lineage.Item{lineage.System("Be polite"), lineage.User("Hi")}, "system: Be brief. | system: Be polite | user: Hi"},
		"another of its length":                  {"Be brief.", []lineage.Item{lineage.System("Be short.")}, "system: Be brief. | system: Be short."},
		"it is said later":                       {"Be brief.", []lineage.Item{lineage.User("Hi"), lineage.System("Be brief.")}, "system: Be brief. | user: Hi | system: Be brief."},
		"somebody else says it":                  {"Be brief.", []lineage.Item{lineage.User("Be brief.")}, "system: Be brief. | user: Be brief."},
		"what said it was erased":                {"Be erased.", []lineage.Item{erased}, "system: Be erased. | system: [erased]"},
		"there is none":                          {"", []lineage.Item{lineage.User("Hi")}, "user: Hi"},
		"nothing was said, which is not written": {"Be brief.", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.NewTicking(t)
			_, main := newThread(t, s, prompt(test.prompt))
			if len(test.says) > 0 {
				extend(t, main, test.says...)
			}
			if name == "what said it was erased" {
				require.NoError(t, s.Erase(bg, content.Sum(erased.Body)))
			}
			for _, format := range []export.Format{export.OpenAI, export.ShareGPT} {
				require.Equal(t, test.want, strings.Join(lines(t, s, format), "\n"), format)
			}
		})
	}
}

// A context is exported with the prompt in force for it.
func TestSystemPromptsOfBranches(t *testing.T) {
	s := storetest.NewTicking(t)
	thread, main := newThread(t, s, prompt("Be brief."))
	extend(t, main, lineage.User("Hi"))
	for name, o := range map[string]lineage.Overrides{"inherits": {}, "polite": prompt("Be polite."), "none": prompt("")} {
		_, err := thread.CreateBranch(bg, name, lineage.BranchOptions{Overrides: o})
		require.NoError(t, err)
	}
	unnamed, err := main.Fork(bg, lineage.ForkOptions{Overrides: prompt("Stay where a branch is.")})
	require.NoError(t, err)
	subagent, err := main.Fork(bg, lineage.ForkOptions{Overrides: prompt("Search.")})
	require.NoError(t, err)
	extend(t, subagent, lineage.Assistant("Found."))
	want := []string{"system: Be brief. | user: Hi", "system: Be polite. | user: Hi", "user: Hi", "system: Search. | user: Hi | assistant: Found."}
	for _, format := range []export.Format{export.OpenAI, export.ShareGPT} {
		require.ElementsMatch(t, want, lines(t, s, format), format)
		one := written(t, s, format, export.Options{Scope: export.Scope{Context: unnamed}})
		require.Contains(t, one, "Stay where a branch is.")
	}
	for _, format := range []export.Format{export.Markdown, export.HTML} {
		require.NotContains(t, written(t, s, format, export.Options{}), "Be brief.")
	}
}

// An exported and imported prompt is a message: it is not written twice, and importing it again
// adds nothing.
func TestSystemPromptComesBackOnce(t *testing.T) {
	for _, format := range []export.Format{export.OpenAI, export.ShareGPT} {
		from, to := storetest.NewTicking(t), storetest.NewTicking(t)
		_, main := newThread(t, from, prompt("Be brief.\n\"Now\""))
		extend(t, main, lineage.User("Hi"), lineage.Assistant("Hello"))
		out := written(t, from, format, export.Options{})
		for _, s := range []*lineage.Store{to, from} {
			for again := range 2 {
				before, err := s.Stats(bg)
				require.NoError(t, err)
				_, err = importer.Import(bg, s, archive.Stream("", bytes.NewReader([]byte(out))), importer.Options{Format: string(format)})
				require.NoError(t, err)
				after, err := s.Stats(bg)
				require.NoError(t, err)
				if again == 1 {
					require.Equal(t, [...]uint64{before.Threads, before.Spans, before.Contexts}, [...]uint64{after.Threads, after.Spans, after.Contexts})
				}
			}
		}
		require.Equal(t, out, written(t, to, format, export.Options{}))
	}
}
