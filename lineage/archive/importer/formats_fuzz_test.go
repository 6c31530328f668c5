package importer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
)

// formatSeeds are inputs for the formats of services.
var formatSeeds = []string{
	`[{"conversation_id":"c","current_node":"b","mapping":{"r":{"message":null,"parent":null},"a":{"parent":"r","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["x"]}}},"b":{"parent":"a","message":{"author":{"role":"tool","name":"t"},"content":{"content_type":"code","text":"y"}}}}}]`,
	`{"mapping":{"a":{"parent":"b","message":{}},"b":{"parent":"a","message":{"content":null}}}}`,
	`[{"uuid":"c","chat_messages":[{"uuid":"m","sender":"human","text":"x","content":[{"type":"text","text":"x","citations":[1]}],"attachments":[{"file_name":"f","extracted_content":"e"}],"parent_message_uuid":"m"}]}]`,
	`[{"id":"w","chat":{"models":["m"],"history":{"currentId":"1","messages":{"1":{"parentId":"2","role":"user","content":"x"},"2":3}}}}]`,
	`{"conversationId":"l","exportAt":"now","messages":[{"messageId":"1","parentMessageId":"00000000-0000-0000-0000-000000000000","text":"x","children":[{"messageId":"2","parentMessageId":"1","content":[{"type":"text"}]}]}]}`,
	"{\"type\":\"summary\",\"summary\":\"s\",\"leafUuid\":\"l\"}\n{\"type\":\"user\",\"uuid\":\"u\",\"parentUuid\":null,\"sessionId\":\"s\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n{\"type\":\"assistant\",\"uuid\":\"v\",\"parentUuid\":\"u\",\"sessionId\":\"s\",\"message\":{\"id\":\"m\",\"content\":[{\"type\":\"tool_use\"}]}}\n{\"type\":\"user\",\"uuid\":\"w\",\"parentUuid\":\"v\",\"message\":{\"content\":[{\"type\":\"tool_result\"}]}}",
	"{\"sessionId\":\"s\",\"projectHash\":\"p\",\"startTime\":\"2026-01-01T00:00:00Z\"}\n{\"id\":\"1\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"user\",\"content\":\"x\"}\n{\"id\":\"2\",\"type\":\"gemini\",\"content\":\"y\"}\n{\"id\":\"2\",\"type\":\"gemini\",\"content\":\"z\"}\n{\"$rewindTo\":\"2\"}\n{\"$set\":{\"summary\":\"t\",\"messages\":[{\"id\":\"1\",\"type\":\"user\",\"content\":\"x\"},{\"id\":\"1\"}]}}",
	"{\"kind\":0,\"v\":{\"version\":3,\"sessionId\":\"s\",\"requests\":[{\"requestId\":\"1\",\"message\":{\"text\":\"x\"},\"response\":[{\"value\":\"y\"}]}]}}\n{\"kind\":2,\"k\":[\"requests\"],\"v\":[{\"requestId\":\"2\"}],\"i\":0}\n{\"kind\":1,\"k\":[\"requests\",0,\"message\"],\"v\":\"z\"}\n{\"kind\":3,\"k\":[\"requests\"]}",
	"{\"type\":\"session_meta\",\"payload\":{\"id\":\"s\",\"forked_from_id\":\"t\"}}\n{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"x\"}]}}\n{\"type\":\"compacted\",\"payload\":{\"replacement_history\":[{\"role\":\"user\",\"content\":\"y\"},3]}}",
}

// fuzzServiceFormat requires that a format ends without a panic for any input, that its conversations are
// valid, and that it does not yield without end.
func fuzzServiceFormat(f *testing.F, name string, files ...string) {
	if len(files) == 0 {
		files = []string{"0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001.jsonl"}
	}
	all := formats.All()
	format := all[slices.IndexFunc(all, func(other archive.Format) bool { return other.Name == name })]

	for _, seed := range formatSeeds {
		f.Add([]byte(seed))
	}
	samples, err := filepath.Glob("../testdata/agents/" + strings.TrimSuffix(name, "-jsonl") + "/*")
	require.NoError(f, err)
	nested, err := filepath.Glob("../testdata/agents/" + strings.TrimSuffix(name, "-jsonl") + "/*/*")
	require.NoError(f, err)
	for _, sample := range append(samples, nested...) {
		if info, err := os.Stat(sample); err == nil && info.Mode().IsRegular() && info.Size() < 64<<10 {
			b, err := os.ReadFile(sample)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		format.Detect(archive.Head{Name: "x.json", Bytes: b})
		for _, file := range files {
			format.Detect(archive.Head{Name: file, Bytes: b})
			readAny(t, format, file, b)
		}
	})
}

func readAny(t *testing.T, format archive.Format, file string, b []byte) {
	in := archive.NewInput(file, bytes.NewReader(b))
	nodes := 0
	for c, err := range format.Read(context.Background(), in) {
		if err != nil {
			var d *archive.Damage
			require.True(t, errors.As(err, &d), "%v", err)
			continue
		}
		require.NotNil(t, c)
		require.True(t, utf8.ValidString(c.SourceID) && utf8.ValidString(c.Title))
		requireObject(t, c.Metadata)
		ids := make(map[string]bool)
		for some := range c.Parts() {
			for _, n := range some {
				nodes++
				require.True(t, utf8.ValidString(n.ID) && utf8.ValidString(n.Role) && utf8.ValidString(n.Name))
				requireObject(t, n.Metadata)
				if slices.Contains([]string{"chatgpt", "deepseek", "claude", "open-webui", "librechat", "grok"}, format.Name) {
					require.True(t, n.Root || ids[n.Parent], "each message comes after its parent")
				}
				ids[n.ID] = true
			}
		}
	}
	require.LessOrEqual(t, nodes, len(b)/2+1)
}

func requireObject(t *testing.T, raw []byte) {
	if raw != nil {
		require.True(t, json.Valid(raw) && rawjson.IsObject(raw) && utf8.Valid(raw), "%q", raw)
	}
}

func FuzzChatGPT(f *testing.F)     { fuzzServiceFormat(f, "chatgpt") }
func FuzzDeepSeek(f *testing.F)    { fuzzServiceFormat(f, "deepseek") }
func FuzzGrok(f *testing.F)        { fuzzServiceFormat(f, "grok") }
func FuzzClaudeAI(f *testing.F)    { fuzzServiceFormat(f, "claude") }
func FuzzOpenWebUI(f *testing.F)   { fuzzServiceFormat(f, "open-webui") }
func FuzzLibreChat(f *testing.F)   { fuzzServiceFormat(f, "librechat") }
func FuzzClaudeCode(f *testing.F)  { fuzzServiceFormat(f, "claude-code") }
func FuzzCodex(f *testing.F)       { fuzzServiceFormat(f, "codex") }
func FuzzCodexJSON(f *testing.F)   { fuzzServiceFormat(f, "codex-json") }
func FuzzPi(f *testing.F)          { fuzzServiceFormat(f, "pi") }
func FuzzQwen(f *testing.F)        { fuzzServiceFormat(f, "qwen") }
func FuzzGemini(f *testing.F)      { fuzzServiceFormat(f, "gemini") }
func FuzzVSCode(f *testing.F)      { fuzzServiceFormat(f, "vscode") }
func FuzzCopilotJSON(f *testing.F) { fuzzServiceFormat(f, "copilot-json") }
func FuzzCopilot(f *testing.F)     { fuzzServiceFormat(f, "copilot") }
func FuzzATIF(f *testing.F)        { fuzzServiceFormat(f, "atif") }
func FuzzAider(f *testing.F)       { fuzzServiceFormat(f, "aider") }
func FuzzGooseLines(f *testing.F)  { fuzzServiceFormat(f, "goose-jsonl") }
func FuzzAntigravity(f *testing.F) {
	fuzzServiceFormat(f, "antigravity", "brain/0b0e7a9c-1f4e-4a4e-9d55-4a4e9d550001/.system_generated/logs/transcript_full.jsonl")
}

func FuzzCline(f *testing.F) {
	fuzzServiceFormat(f, "cline", "1/x.messages.json", "1/api_conversation_history.json", "1/ui_messages.json")
}

// The sessions of OpenCode are read with files beside them: any content of those is read or refused.
func FuzzOpenCodeFiles(f *testing.F) {
	all := formats.All()
	format := all[slices.IndexFunc(all, func(other archive.Format) bool { return other.Name == "opencode-files" })]
	f.Add([]byte(`{"id":"ses_1","projectID":"p","time":{"created":1},"title":"t"}`), []byte(`{"id":"msg_1","sessionID":"ses_1","role":"user","time":{"created":1}}`), []byte(`{"id":"prt_1","messageID":"msg_1","type":"text","text":"x"}`))
	f.Add([]byte(`{"id":"../x","projectID":"..","time":3,"parentID":"ses_1"}`), []byte(`[]`), []byte(`{"type":"tool","state":{"metadata":{"sessionId":"ses_1"}}}`))
	f.Fuzz(func(t *testing.T, session, body, part []byte) {
		root := t.TempDir()
		for path, b := range map[string][]byte{"session/p/ses_1.json": session, "message/ses_1/msg_1.json": body, "part/msg_1/prt_1.json": part} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(root, path), b, 0o600))
		}
		for e, err := range archive.Read(t.Context(), archive.Path(filepath.Join(root, "session/p/ses_1.json")), archive.ReadOptions{Format: format.Name, Formats: all}) {
			if err != nil {
				continue // it says what
			}
			requireObject(t, e.Metadata)
			for _, n := range e.Nodes {
				require.True(t, utf8.ValidString(n.ID) && utf8.ValidString(n.Role) && utf8.ValidString(n.Name))
				requireObject(t, n.Metadata)
			}
		}
	})
}
