package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// raws are JSON values, accessed with encoding/json only.
type raws []json.RawMessage

// valuesOf returns the consecutive values in a file. Lines that are not JSON are skipped.
func valuesOf(t testing.TB, data []byte) (out raws) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var v json.RawMessage
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			break
		}
		out = append(out, v)
	}
	out = nil
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); json.Valid(line) {
			out = append(out, bytes.Clone(line))
		}
	}
	return out
}

// at returns the values at a path of keys, or "*" for all members and elements.
func (r raws) at(path ...string) raws {
	for _, key := range path {
		var next raws
		for _, v := range r {
			var list []json.RawMessage
			var members map[string]json.RawMessage
			switch {
			case key == "*" && json.Unmarshal(v, &list) == nil:
				next = append(next, list...)
			case json.Unmarshal(v, &members) != nil:
			case key == "*":
				for _, m := range members {
					next = append(next, m)
				}
			case members[key] != nil:
				next = append(next, members[key])
			}
		}
		r = next
	}
	return r
}

// items are the values, or the elements of a single list.
func (r raws) items() raws {
	if len(r) == 1 && r[0][0] == '[' {
		return r.at("*")
	}
	return r
}

// having keeps the objects with a member, and with one of the given texts if there are any.
func (r raws) having(key string, texts ...string) (out raws) {
	for _, v := range r {
		var members map[string]json.RawMessage
		var text string
		if json.Unmarshal(v, &members) == nil && members[key] != nil {
			_ = json.Unmarshal(members[key], &text)
			if len(texts) == 0 || slices.Contains(texts, text) {
				out = append(out, v)
			}
		}
	}
	return out
}

// below adds the objects under a key, recursively.
func (r raws) below(key string) raws {
	if len(r) == 0 {
		return nil
	}
	return append(slices.Clone(r), r.at(key, "*").below(key)...)
}

// without removes a member from each object.
func (r raws) without(t testing.TB, key string) (out raws) {
	for _, v := range r {
		d := json.NewDecoder(bytes.NewReader(v))
		_, err := d.Token()
		require.NoError(t, err)
		for n := 0; d.More(); n++ {
			begin := d.InputOffset()
			name, err := d.Token()
			require.NoError(t, err)
			var value json.RawMessage
			require.NoError(t, d.Decode(&value))
			if name == key {
				end := d.InputOffset()
				if n == 0 && d.More() {
					begin++ // the brace stays, the comma goes
					begin += int64(bytes.IndexByte(v[begin-1:], '"')) - 1
					end += int64(bytes.IndexByte(v[end:], '"'))
				}
				v = slices.Concat(v[:begin], v[end:])
				break
			}
		}
		out = append(out, v)
	}
	return out
}

// messageObjects finds the message objects of each format.
var messageObjects = map[string]func(file raws) (objects raws, link string){
	"chatgpt": func(f raws) (raws, string) {
		named := f.at("*") // conversations by name
		return append(f.items(), named...).at("mapping", "*", "message").having("author"), ""
	},
	"deepseek": func(f raws) (raws, string) { return f.items().at("mapping", "*", "message").having("fragments"), "" },
	"grok": func(f raws) (raws, string) {
		return append(f.at("conversations", "*"), f...).at("responses", "*", "response").having("sender"), ""
	},
	"claude": func(f raws) (raws, string) { return f.items().at("chat_messages", "*").having("uuid"), "" },
	"open-webui": func(f raws) (raws, string) {
		return f.items().at("chat", "history", "messages", "*").having("id"), "childrenIds"
	},
	"librechat": func(f raws) (raws, string) {
		return f.items().at("messages", "*").below("children"), "children"
	},
	"claude-code": func(f raws) (raws, string) {
		lines := append(f.at("loglines", "*"), f...)
		return lines.having("type", "user", "assistant").at("message").having("content"), ""
	},
	"codex": func(f raws) (raws, string) {
		return append(f.having("type", "response_item").at("payload"), f.having("type", "compacted").at("payload", "replacement_history", "*")...), ""
	},
	"pi":             objectsOfPi,
	"openclaw-jsonl": objectsOfPi,
	"copilot": func(f raws) (raws, string) {
		return f.having("type", "user.message", "assistant.message", "system.message", "tool.execution_complete").at("data"), ""
	},
	"gemini": func(f raws) (raws, string) {
		return append(f, f.at("messages", "*")...).having("type", "gemini"), ""
	},
	"qwen": func(f raws) (raws, string) {
		return f.having("type", "user", "assistant", "tool_result").at("message"), ""
	},
	"vscode": func(f raws) (raws, string) {
		whole := f.at("requests", "*")
		return append(append(whole.at("message"), whole.at("response")...), f.at("v", "*", "message")...), ""
	},
	"openai": func(f raws) (raws, string) {
		for _, list := range []string{"messages", "traj", "history"} {
			if found := f.items().at(list, "*"); len(found) > 0 {
				return found, ""
			}
		}
		return nil, ""
	},
	"sharegpt": func(f raws) (raws, string) { return f.items().at("conversations", "*"), "" },
	"oasst": func(f raws) (raws, string) {
		if trees := f.at("prompt"); len(trees) > 0 {
			return trees.below("replies"), "replies"
		}
		return f.below("replies"), "replies"
	},
	"branch-files": func(f raws) (raws, string) { return f.at("messages", "*"), "" },
	// Formats with text instead of objects.
	"turns": nil, "preferences": nil, "prompt-logs": nil,
}

// originals returns the original bodies of a store's messages.
func originals(t testing.TB, s *lineage.Store) map[string]bool {
	out := make(map[string]bool)
	ctx := context.Background()
	for thread, err := range s.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		for c, err := range thread.Contexts(ctx) {
			require.NoError(t, err)
			for e, err := range c.Entries(ctx, lineage.Window{}) {
				require.NoError(t, err)
				body, err := s.Original(ctx, e)
				require.NoError(t, err)
				out[string(body)] = true
			}
		}
	}
	return out
}

func objectsOfPi(f raws) (raws, string) {
	return append(f.having("type", "message").at("message"), f.having("type", "compaction", "branch_summary", "custom_message")...), ""
}

// requireGiven requires that a store returns each message object of an archive, and that the report
// counts those it does not.
func requireGiven(t testing.TB, format string, s *lineage.Store, report importer.Report, files ...raws) {
	t.Helper()
	find, known := messageObjects[format]
	require.True(t, known, format)
	if find == nil {
		require.Zero(t, report.Converted)
		return
	}
	stored := originals(t, s)
	converted, found := 0, 0
	for _, f := range files {
		objects, link := find(f)
		for _, object := range objects {
			found++
			left := raws{object}
			if link != "" {
				left = left.without(t, link)
			}
			if len(left[0]) != len(object) {
				converted++
			}
			require.True(t, stored[string(left[0])], "%s", left[0])
		}
	}
	require.NotZero(t, found, format)
	require.EqualValues(t, converted, report.Converted)
	require.Zero(t, report.Opaque)
}

// For every format, message objects are returned byte for byte.
func TestMessageObjectsAreKept(t *testing.T) {
	paths := make(map[string]string)
	for _, f := range messageFixtures {
		paths[f.path] = f.format
	}
	for _, f := range serviceFixtures {
		if filepath.Ext(f.path) != ".zip" {
			paths[f.path] = f.format
		}
	}
	for path, format := range paths {
		t.Run(path, func(t *testing.T) {
			var files []raws
			require.NoError(t, filepath.WalkDir(fixture(path), func(name string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() || d.Name() == "LICENSE" {
					return err
				}
				b, err := os.ReadFile(name)
				files = append(files, valuesOf(t, b))
				return err
			}))
			s := storetest.New(t)
			report, err := importer.Import(t.Context(), s, archive.Path(fixture(path)), importer.Options{Format: format})
			require.NoError(t, err)
			requireGiven(t, format, s, report, files...)
			requireImportedAgain(t, s, archive.Path(fixture(path)))
		})
	}
}

// A message with too many parts is stored whole and reported.
func TestOpaqueMessagesAreCounted(t *testing.T) {
	object := `{"role":"user","content":[` + strings.Repeat(`{"type":"text","text":"a"},`, 1001) + `{"type":"text","text":"b"}]}`
	s := storetest.New(t)
	report, err := importer.Import(t.Context(), s, archive.Stream("", strings.NewReader(`{"messages":[`+object+`,{"role":"user","content":"c"}]}`)), importer.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 1, report.Opaque)
	require.True(t, originals(t, s)[object])
}
