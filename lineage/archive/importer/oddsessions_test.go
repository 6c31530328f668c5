package importer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// oddRecord is a record of a session as a program that broke its file could have written it. Its
// fields are JSON.
type oddRecord struct {
	id, parent, time, text, more string
	user                         bool
}

func (r oddRecord) role(user, assistant string) string {
	if r.user {
		return user
	}
	return assistant
}

// oddSessions write such records as lines of a session.
var oddSessions = map[string]struct {
	header string
	// parts is set if a session can have several files, so that a parent can be in any of them: one
	// that comes later in the file is not drawn.
	parts bool
	line  func(r oddRecord) string
}{
	"claude-code": {`{"type":"summary","summary":"t","leafUuid":"x"}`, true, func(r oddRecord) string {
		return fmt.Sprintf(`{"type":"%s","sessionId":"s","uuid":%s,"parentUuid":%s,"timestamp":%s,%s"message":{"content":%s}}`, r.role("user", "assistant"), r.id, r.parent, r.time, r.more, r.text)
	}},
	"codex": {`{"type":"session_meta","payload":{"id":"s"}}`, false, func(r oddRecord) string {
		return fmt.Sprintf(`{"type":"response_item","timestamp":%s,%s"payload":{"type":"message","id":%s,"role":"%s","content":%s}}`, r.time, r.more, r.id, r.role("user", "assistant"), r.text)
	}},
	"copilot": {`{"type":"session.start","data":{"sessionId":"s"},"id":"first","timestamp":"2026-01-01T00:00:00Z","parentId":null}`, false, func(r oddRecord) string {
		return fmt.Sprintf(`{"type":"%s.message","id":%s,"parentId":%s,"timestamp":%s,%s"data":{"content":%s}}`, r.role("user", "assistant"), r.id, r.parent, r.time, r.more, r.text)
	}},
	"gemini": {`{"sessionId":"s","projectHash":"p","startTime":"2026-01-01T00:00:00Z"}`, false, func(r oddRecord) string {
		return fmt.Sprintf(`{"type":"%s","id":%s,"timestamp":%s,%s"content":%s}`, r.role("user", "gemini"), r.id, r.time, r.more, r.text) + "\n" + fmt.Sprintf(`{"$rewindTo":%s}`, r.parent)
	}},
	"qwen": {`{"uuid":"first","parentUuid":null,"sessionId":"s","type":"system","systemPayload":{}}`, false, func(r oddRecord) string {
		return fmt.Sprintf(`{"type":"%s","sessionId":"s","uuid":%s,"parentUuid":%s,"timestamp":%s,%s"message":{"parts":[{"text":%s}]}}`, r.role("user", "assistant"), r.id, r.parent, r.time, r.more, r.text)
	}},
	"pi": {`{"type":"session","id":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}`, false, func(r oddRecord) string {
		return fmt.Sprintf(`{"type":"message","id":%s,"parentId":%s,"timestamp":%s,%s"message":{"role":"%s","content":%s}}`, r.id, r.parent, r.time, r.more, r.role("user", "assistant"), r.text)
	}},
}

// A session with missing, circular and repeated ids, odd values, records of unknown kinds and half a
// last line loses nothing, and is recognised when it is imported again and when it has grown.
func TestOddSessions(t *testing.T) {
	for name, format := range oddSessions {
		t.Run(name, func(t *testing.T) {
			s, n := storetest.New(t), 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				lines := []string{format.header}
				texts := make(map[string]bool)
				var earlier []string
				id := rapid.SampledFrom([]string{`"a"`, `"b"`, `"c"`, `"d"`, `"e"`, `""`, `null`, `7`, `"\ud800"`})
				for i := range rapid.IntRange(1, 12).Draw(t, "records") {
					text := fmt.Sprintf("%d-%d", n, i)
					parent := id
					if format.parts {
						parent = rapid.SampledFrom(append(earlier, `""`, `null`, `"missing"`))
					}
					r := oddRecord{
						id: id.Draw(t, "id"), parent: parent.Draw(t, "parent"), user: rapid.Bool().Draw(t, "user"), text: `"` + text + `"`,
						time: rapid.SampledFrom([]string{`"2026-01-01T00:00:00Z"`, `null`, `""`, `1e999`, `-9223372036854775808`, `1767225600000`, `"yesterday"`, `{}`}).Draw(t, "time"),
						more: rapid.SampledFrom([]string{``, `"x":"\udfff",`, `"n":123456789012345678901234567890,`, `"d":` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `,`, `"type":"x",`}).Draw(t, "more"),
					}
					if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
						lines = append(lines, strings.Replace(format.line(r), `"type":"`, `"type":"new `, 1))
					} else {
						lines = append(lines, format.line(r))
					}
					texts[text] = true
					earlier = append(earlier, r.id)
				}
				o := importer.Options{Format: name, Prefix: fmt.Sprint(n, "/")}
				load := func(text string) importer.Report {
					report, err := importer.Import(t.Context(), s, archive.Stream("s.jsonl", strings.NewReader(text)), o)
					require.NoError(t, err)
					require.Empty(t, report.Skipped, "%s", text)
					return report
				}
				all := strings.Join(lines, "\n") + "\n"
				cut := rapid.IntRange(2, len(lines)).Draw(t, "cut")
				load(strings.Join(lines[:cut], "\n") + "\n" + `{"type":"half`)
				load(all)
				stored := strings.Join(bodiesIn(t, s, o.Prefix+"s"), "\n")
				for text := range texts {
					require.Contains(t, stored, text, "%s", all)
				}
				again := load(all)
				require.Zero(t, again.NewMessages)
				require.Zero(t, again.NewConversations)
			})
			requireSound(t, s)
		})
	}
}

// bodiesIn returns the original bodies of everything in a thread.
func bodiesIn(t require.TestingT, s *lineage.Store, sourceID string) (bodies []string) {
	ctx := context.Background()
	thread, err := s.FindThread(ctx, sourceID)
	require.NoError(t, err)
	for c, err := range thread.Contexts(ctx) {
		require.NoError(t, err)
		for e, err := range c.Entries(ctx, lineage.Window{}) {
			require.NoError(t, err)
			body, err := s.Original(ctx, e)
			require.NoError(t, err)
			bodies = append(bodies, string(body))
		}
	}
	return bodies
}
