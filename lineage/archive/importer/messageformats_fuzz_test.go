package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// checkRead reads an input twice and checks the results.
func checkRead(t *testing.T, open func() iter.Seq2[*archive.Conversation, error]) {
	t.Helper()
	var first string
	for range 2 {
		var conversations []*archive.Conversation
		var damages []*archive.Damage
		for c, err := range open() {
			if err != nil {
				var d *archive.Damage
				require.ErrorAs(t, err, &d)
				damages = append(damages, d)
				continue
			}
			for some := range c.Parts() {
				for _, m := range some {
					require.NotEmpty(t, m.Role)
					require.True(t, m.Metadata == nil || json.Valid(m.Metadata), "%q", m.Metadata)
					if m.Type == "application/json" {
						require.True(t, json.Valid(m.Body), "%q", m.Body)
					}
				}
			}
			require.True(t, c.Metadata == nil || json.Valid(c.Metadata), "%q", c.Metadata)
			conversations = append(conversations, c)
		}
		text := shown(conversations, damages)
		if first == "" {
			first = text
		}
		require.Equal(t, first, text)
	}
}

func fuzzFormat(f *testing.F, format string, seeds ...string) {
	i := slices.IndexFunc(formats.All(), func(known archive.Format) bool { return known.Name == format })
	require.GreaterOrEqual(f, i, 0)
	known := formats.All()[i]
	for _, s := range messageFixtures {
		if s.format == format {
			if b, err := os.ReadFile(fixture(s.path)); err == nil && len(b) < 64<<10 {
				f.Add(b)
			}
		}
	}
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		known.Detect(archive.Head{Bytes: input[:min(len(input), archive.HeadSize)]})
		checkRead(t, func() iter.Seq2[*archive.Conversation, error] {
			return known.Read(context.Background(), archive.NewInput("in", bytes.NewReader(input)))
		})
	})
}

func FuzzOpenAI(f *testing.F) {
	fuzzFormat(f, "openai", `{"messages":[{"role":"a","content":null,"tool_calls":[]},{"role":"a","parts":[1]}]}`, `[[{"role":"","content":""}]]`, `[{"role":"u","content":[{}]},5]`,
		`{"trajectory":[{"action":"","observation":""}],"history":[{"role":"x","content":"\ud800"}]}`)
}

func FuzzShareGPT(f *testing.F) {
	fuzzFormat(f, "sharegpt", `{"conversations":[{"from":"function_call","value":"{"},{"from":"bing","value":null}]}`)
}

func FuzzOasst(f *testing.F) {
	fuzzFormat(f, "oasst", `{"message_id":"a","parent_id":"a","text":"t","role":"r","replies":[{"message_id":"a","text":"t","role":"r"}]}`)
}

func FuzzPreferences(f *testing.F) {
	fuzzFormat(f, "preferences", `{"chosen":"\n\nHuman:\n\nHuman:x","rejected":[{"role":"a","content":1}],"prompt":"p"}`)
}

func FuzzTurns(f *testing.F) {
	fuzzFormat(f, "turns", `{"history":[{"user":1,"bot":null,"x":[]}],"task":{},"id":[]}`)
}

func FuzzBranchFiles(f *testing.F) {
	fuzzFormat(f, "branch-files", `{"id":"a","name":"b","messages":[{"role":"a","content":1,"b":2,"a":3,"a":4}],"createdAt":-1}`)
}

func FuzzPromptLogs(f *testing.F) {
	f.Add("rules\n\n----------\n\nask", "answer", "rules\n\n----------\n\nask\n\n----------\n\nanswer\n\n----------\n\nmore")
	f.Add("", "\xff", "----------")
	f.Fuzz(func(t *testing.T, first, answer, second string) {
		dir := t.TempDir()
		for name, text := range map[string]string{"prompt_1.log": first, "response_1.log": answer, "prompt_2.log": second} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		conversations, damages := readAll(t, archive.Path(dir), importer.Options{})
		require.Empty(t, damages)
		require.LessOrEqual(t, len(conversations), 1)
	})
}
