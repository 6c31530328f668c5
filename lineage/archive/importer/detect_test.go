package importer_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

const otherAgent = `{"type":"conversation","id":"s","timestamp":"2026-01-01T00:00:00Z","folder":"/w"}
{"type":"entry","id":"a1","parentId":null,"timestamp":"2026-01-01T00:00:01Z","message":{"role":"user","content":[{"type":"text","text":"hi"}]}}
{"type":"entry","id":"a2","parentId":"a1","timestamp":"2026-01-01T00:00:02Z","message":{"role":"assistant","content":[{"type":"text","text":"hello"}]}}
`

// A file of an unknown agent is reported as unknown.
func TestSessionsOfOtherAgents(t *testing.T) {
	for _, source := range []string{otherAgent, strings.ReplaceAll(otherAgent, `"parentId":null,`, ""), strings.ReplaceAll(otherAgent, `"id":`, `"uuid":`)} {
		_, err := importer.Import(t.Context(), storetest.New(t), archive.Stream("s.jsonl", strings.NewReader(source)), importer.Options{})
		require.ErrorIs(t, err, archive.ErrUnknownFormat)
	}
	report := importText(t, storetest.New(t), "z", string(zipped(t, file{"s.jsonl", []byte(otherAgent)}, file{"c.jsonl", []byte(oneConversation)})), importer.Options{})
	require.Equal(t, []string{"z/s.jsonl"}, report.Ignored)
	require.EqualValues(t, 1, report.Messages)
}

// A file in a known format without messages is reported: as skipped, or as repaired if its records
// are kept.
func TestFilesWithoutMessages(t *testing.T) {
	for name, source := range map[string]string{
		"claude-code": otherAgent, "chatgpt": `[{"mapping":{}}]`, "claude": `[{"uuid":"c","chat_messages":[]}]`, "openai": `{"messages":[]}`,
		"deepseek": `[{"id":"c","inserted_at":"x","mapping":{}}]`, "grok": `{"conversation":{"id":"c"},"responses":[]}`,
		"sharegpt": `{"conversations":[]}`, "turns": `{"history":[]}`,
	} {
		report, err := importer.Import(t.Context(), storetest.New(t), archive.Stream("f", strings.NewReader(source)), importer.Options{Format: name})
		require.NoError(t, err, name)
		require.Zero(t, report.Messages, name)
		reported, other := report.Skipped, report.Repaired
		if name == "claude-code" {
			reported, other = other, reported
			require.NotZero(t, report.NewBytes)
		} else {
			require.Zero(t, report.NewBytes)
		}
		require.Len(t, reported, 1, name)
		require.Empty(t, other, name)
		require.ErrorIs(t, reported[0], archive.ErrNoMessages, name)
	}
}

// The format is detected from what follows a header or empty conversations.
func TestDetectionBeyondTheFirstItem(t *testing.T) {
	first := map[string]struct {
		header string
		damage int // the header is reported
	}{
		"nothing": {}, "metadata": {`{"type":"header","version":1,"exported_at":"2026-01-01"}` + "\n", 1}, "comment": {"# made by a program\n", 1},
		"empty": {`{"messages":[]}` + "\n" + `{"conversations":[]}` + "\n", 1}, "blank": {"\n\n \n", 0},
	}
	lines := map[string]string{
		"openai": oneConversation, "sharegpt": `{"conversations":[{"from":"human","value":"hi"}]}`, "turns": `{"history":[{"user":"a","bot":"b"}]}`,
		"oasst": `{"message_id":"m","parent_id":null,"role":"prompter","text":"hi","message_tree_id":"m"}`,
		"codex": `{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":"hi"}}`,
	}
	for name, header := range first {
		for format, line := range lines {
			report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("f", strings.NewReader(header.header+line+"\n")), importer.Options{})
			require.NoError(t, err, "%s before %s", name, format)
			require.Equal(t, []string{format}, report.Formats, "%s before %s", name, format)
			require.NotZero(t, report.Messages)
			if header.damage > 0 && name != "empty" {
				require.Len(t, report.Skipped, 1, "%s before %s: %v", name, format, report.Skipped)
			}
		}
	}
	for format, list := range map[string]string{
		"openai": `[{"messages":[]},{"messages":[{"role":"user","content":"hi"}]}]`, "sharegpt": `[{"conversations":[]}, {"conversations":[{"from":"human","value":"hi"}]}]`,
		"chatgpt": `[{}, {"mapping":{"m":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}}}}]`,
		"claude":  `[{"uuid":"x"}, {"uuid":"c","chat_messages":[{"uuid":"m","text":"hi","sender":"human"}]}]`,
	} {
		report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("f", strings.NewReader(list)), importer.Options{})
		require.NoError(t, err)
		require.Equal(t, []string{format}, report.Formats)
		require.EqualValues(t, 1, report.Messages)
	}
}

// Unusable parts of a conversation are reported.
func TestSkippedPartsAreReported(t *testing.T) {
	for format, source := range map[string]string{
		"chatgpt":      `[{"conversation_id":"c","mapping":{"x":7,"y":{"message":"text"},"z":{"message":null},"m":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]}}}}}]`,
		"open-webui":   `[{"id":"c","chat":{"history":{"currentId":"m","messages":{"x":7,"y":[],"m":{"role":"user","content":"hi"}}}}}]`,
		"claude":       `[{"uuid":"c","chat_messages":[7,[],{"uuid":"m","text":"hi","sender":"human"}]}]`,
		"deepseek":     `[{"id":"c","inserted_at":"x","mapping":{"x":7,"y":{"message":"text"},"z":{"message":null},"m":{"message":{"fragments":[{"type":"REQUEST","content":"hi"}]}}}}]`,
		"grok":         `{"conversations":[{"conversation":{"id":"c"},"responses":[7,{"response":[]},{"response":{"_id":"m","message":"hi","sender":"human"}}]}]}`,
		"librechat":    `{"conversationId":"c","endpoint":"e","messages":[7,{"text":"hi","isCreatedByUser":true,"children":[{"messageId":"n","text":"lost"}]}]}`,
		"copilot-json": `{"sessionId":"s","startTime":"2025-10-12T09:00:00.000Z","chatMessages":[7,{"role":"user","content":"hi"},{"content":"x"}],"timeline":[]}`,
		"codex-json":   `{"session":{"timestamp":"2025-04-20T09:00:00.000Z","id":"s"},"items":[7,{"type":"message","role":"user","content":"hi"},[]]}`,
		"openai":       `{"messages":[{"role":"user","content":"hi"},{"content":"x"},7]}`,
		"sharegpt":     `{"conversations":[{"from":"human"},{"from":"human","value":"hi"},7]}`,
	} {
		report, err := importer.Import(context.Background(), storetest.New(t), archive.Stream("f", strings.NewReader(source)), importer.Options{Format: format})
		require.NoError(t, err)
		require.EqualValues(t, 1, report.Messages, format)
		require.EqualValues(t, 2, report.SkippedCount, "%s: %v", format, report.Skipped)
	}
}

// Conversations are counted, not files or lines.
func TestConversationsAreCountedOnce(t *testing.T) {
	for format, want := range map[string]struct {
		path  string
		count int64
	}{"files": {"claude-code-made", 2}, "lines": {"oasst", 3}} {
		report, err := importer.Import(context.Background(), storetest.New(t), archive.Path(fixture(want.path)), importer.Options{})
		require.NoError(t, err)
		require.Equal(t, want.count, report.Conversations, format)
		require.Equal(t, want.count, report.NewConversations, format)
	}
}
