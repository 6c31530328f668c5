package importer_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/message"
)

// oddMessage is a message with unusual but valid JSON.
type oddMessage struct {
	id, parent string // no parent is ""
	user       bool
	text       string // as a string of JSON
	more       string // members that no format knows, with a comma before them
	space      string // between members
}

func drawOddMessages(t *rapid.T, tree bool) []oddMessage {
	texts := rapid.SampledFrom([]string{
		`"plain"`, `""`, `"a\/b"`, `"\u00e9é"`, `"\u00E9"`, `"\ud83d\ude00"`, `"half \ud83d"`, `"\ude00\ud83d"`, `"nul \u0000"`, `"a\r\nb\n"`, "\"\ufeffmark\"", `"` + strings.Repeat("long ", 80) + `"`,
		"\"not \xff UTF-8\"", "\"\u2028 \x7f <&>\"",
	})
	more := rapid.SampledFrom([]string{
		``, `,"n":1.0`, `,"n":1e2,"n":-0`, `,"big":9223372036854775808`, `,"twice":1,"twice":2`, `,"k\/e\u0079":"\u0076\/"`, `,"deep":{"text":"aside","list":[1.50,null,{}]}`,
		`,"lone":"\ud800"`, `,"nul":"\u0000"`, `,"empty":[],"":{}`, `,"note":"` + strings.Repeat("y", 300) + `"`, ",\"mark\":\"\ufeff\"",
	})
	spaces := rapid.SampledFrom([]string{"", " ", "  ", "\t"})
	out := make([]oddMessage, rapid.IntRange(1, 5).Draw(t, "messages"))
	for i := range out {
		out[i] = oddMessage{id: fmt.Sprint("m", i), user: i%2 == 0, text: texts.Draw(t, "text"), more: more.Draw(t, "more"), space: spaces.Draw(t, "space")}
		if i > 0 {
			out[i].parent = out[i-1].id
		}
		if i > 0 && tree {
			out[i].parent = out[rapid.IntRange(0, i-1).Draw(t, "parent")].id
		}
	}
	return out
}

// write fills in a template: ID, PARENT, TEXT, and ROLE for one of two names. Unknown members come
// last.
func (m oddMessage) write(template, user, assistant string) string {
	role, parent := assistant, `null`
	if m.user {
		role = user
	}
	if m.parent != "" {
		parent = `"` + m.parent + `"`
	}
	s := strings.NewReplacer("ID", `"`+m.id+`"`, "PARENT", parent, "TEXT", m.text, "ROLE", role, "·", m.space).Replace(template)
	return strings.TrimSuffix(s, "}") + m.space + m.more + "}"
}

func written(messages []oddMessage, template, user, assistant string) []string {
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = m.write(template, user, assistant)
	}
	return out
}

// oddFormats write message objects and conversations as a file whose values are lines.
var oddFormats = map[string]struct {
	tree, noID   bool
	object       string // a template
	user, answer string
	file         func(i int, messages []oddMessage, objects []string) []string
}{
	"openai": {false, true, `{"role":"ROLE",·"content":·TEXT}`, "user", "assistant", func(_ int, _ []oddMessage, objects []string) []string {
		return []string{`{"messages":[` + strings.Join(objects, ",") + `]}`}
	}},
	"sharegpt": {false, true, `{·"value":·TEXT,"from":"ROLE"}`, "human", "gpt", func(_ int, _ []oddMessage, objects []string) []string {
		return []string{`{"conversations":[` + strings.Join(objects, " ,\t") + `]}`}
	}},
	"preferences": {false, true, `{"content":[·{"type":"text","text":TEXT}],"role":"ROLE"}`, "user", "assistant", func(_ int, _ []oddMessage, objects []string) []string {
		return []string{`{"chosen":[` + strings.Join(objects, ",") + `],"rejected":[{"role":"user","content":"no"}]}`}
	}},
	"branch-files": {false, false, `{"role":"ROLE",·"content":TEXT}`, "user", "assistant", func(i int, _ []oddMessage, objects []string) []string {
		return []string{fmt.Sprintf(`{"id":"b%d","name":"b","createdAt":"2024-01-01T00:00:00Z","messages":[`, i) + strings.Join(objects, ",") + `]}`}
	}},
	"chatgpt": {true, false, `{"id":ID,"author":{"role":"ROLE"},·"content":{"content_type":"text","parts":[·TEXT]}}`, "user", "assistant", func(i int, messages []oddMessage, objects []string) []string {
		var nodes []string
		for k, m := range messages {
			parent := `null`
			if m.parent != "" {
				parent = `"` + m.parent + `"`
			}
			nodes = append(nodes, fmt.Sprintf(`%q:{"id":%q,"parent":%s,"message":%s}`, m.id, m.id, parent, objects[k]))
		}
		return []string{fmt.Sprintf(`{"id":"c%d","mapping":{`, i) + strings.Join(nodes, ",") + `}}`}
	}},
	"deepseek": {true, false, `{"files":[],·"fragments":[{"type":"ROLE","content":·TEXT}]}`, "REQUEST", "RESPONSE", func(i int, messages []oddMessage, objects []string) []string {
		nodes := []string{`"root":{"id":"root","parent":null,"message":null}`}
		for k, m := range messages {
			nodes = append(nodes, fmt.Sprintf(`%q:{"id":%q,"parent":%q,"message":%s}`, m.id, m.id, cmp.Or(m.parent, "root"), objects[k]))
		}
		return []string{fmt.Sprintf(`{"id":"c%d","inserted_at":"2024-01-01T00:00:00Z","mapping":{`, i) + strings.Join(nodes, ",") + `}}`}
	}},
	"grok": {true, false, `{"_id":ID,·"message":TEXT,"sender":"ROLE","parent_response_id":PARENT}`, "human", "ASSISTANT", func(i int, _ []oddMessage, objects []string) []string {
		var responses []string
		for _, o := range objects {
			responses = append(responses, `{"response":`+o+`}`)
		}
		return []string{fmt.Sprintf(`{"conversation":{"id":"c%d"},"responses":[`, i) + strings.Join(responses, ",") + `]}`}
	}},
	"claude": {true, false, `{"uuid":ID,·"text":TEXT,"sender":"ROLE","parent_message_uuid":PARENT}`, "human", "assistant", func(i int, _ []oddMessage, objects []string) []string {
		return []string{fmt.Sprintf(`{"uuid":"c%d","name":"n","account":{},"chat_messages":[`, i) + strings.Join(objects, ",") + `]}`}
	}},
	"open-webui": {true, false, `{"id":ID,"parentId":PARENT,"role":"ROLE",·"content":TEXT}`, "user", "assistant", func(i int, messages []oddMessage, objects []string) []string {
		var nodes []string
		for k, m := range messages {
			nodes = append(nodes, fmt.Sprintf(`%q:%s`, m.id, objects[k]))
		}
		return []string{fmt.Sprintf(`{"id":"c%d","user_id":"u","chat":{"history":{"currentId":"m0","messages":{`, i) + strings.Join(nodes, ",") + `}}}}`}
	}},
	"librechat": {true, false, `{"messageId":ID,"parentMessageId":PARENT,"isCreatedByUser":ROLE,·"text":TEXT}`, "true", "false", func(i int, _ []oddMessage, objects []string) []string {
		return []string{fmt.Sprintf(`{"conversationId":"c%d","endpoint":"e","messages":[`, i) + strings.Join(objects, ",") + `]}`}
	}},
	"oasst": {true, false, `{"message_id":ID,"parent_id":PARENT,"text":TEXT,"role":"ROLE"}`, "prompter", "assistant", func(i int, _ []oddMessage, objects []string) []string {
		for k := range objects {
			objects[k] = strings.TrimSuffix(objects[k], "}") + fmt.Sprintf(`,"message_tree_id":"t%d"}`, i)
		}
		return objects
	}},
	"claude-code": {true, false, `{"role":"ROLE",·"content":[·{"type":"text","text":TEXT}]}`, "user", "assistant", func(i int, messages []oddMessage, objects []string) []string {
		var lines []string
		for k, m := range messages {
			parent := `null`
			if m.parent != "" {
				parent = `"` + m.parent + `"`
			}
			lines = append(lines, fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"c%d","message":%s}`, map[bool]string{true: "user", false: "assistant"}[m.user], m.id, parent, i, objects[k]))
		}
		return lines
	}},
	"pi": {true, false, `{"role":"ROLE",·"content":[·{"type":"text","text":TEXT}]}`, "user", "assistant", func(i int, messages []oddMessage, objects []string) []string {
		lines := []string{fmt.Sprintf(`{"type":"session","version":3,"id":"c%d","timestamp":"2026-01-01T00:00:00Z","cwd":"/w"}`, i)}
		for k, m := range messages {
			parent := `null`
			if m.parent != "" {
				parent = `"` + m.parent + `"`
			}
			lines = append(lines, fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00Z","message":%s}`, m.id, parent, objects[k]))
		}
		return lines
	}},
	"copilot": {true, false, `{·"content":TEXT}`, "user", "assistant", func(i int, messages []oddMessage, objects []string) []string {
		lines := []string{fmt.Sprintf(`{"type":"session.start","data":{"sessionId":"c%d","copilotVersion":"1.0"},"id":"first","timestamp":"2026-01-01T00:00:00Z","parentId":null}`, i)}
		for k, m := range messages {
			parent := `"first"`
			if m.parent != "" {
				parent = `"` + m.parent + `"`
			}
			lines = append(lines, fmt.Sprintf(`{"type":"%s.message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00Z","data":%s}`, map[bool]string{true: "user", false: "assistant"}[m.user], m.id, parent, objects[k]))
		}
		return lines
	}},
	"codex": {false, false, `{"type":"message",·"role":"ROLE","content":[{"type":"input_text","text":TEXT·}]}`, "user", "assistant", func(i int, _ []oddMessage, objects []string) []string {
		lines := []string{fmt.Sprintf(`{"type":"session_meta","payload":{"id":"c%d"}}`, i)}
		for _, o := range objects {
			lines = append(lines, `{"type":"response_item","payload":`+o+`}`)
		}
		return lines
	}},
}

// For every format and any serialisation of a message, its bytes and text are returned, and equal
// conversations stay separate.
func TestOddMessagesAreKept(t *testing.T) {
	for name, format := range oddFormats {
		t.Run(name, func(t *testing.T) {
			s, n := storetest.New(t), 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				all := make([][]oddMessage, rapid.IntRange(1, 3).Draw(t, "conversations"))
				want := make(map[string]string) // texts by objects
				var files []file
				var together []string // for a format without conversation ids
				for i := range all {
					if all[i] = drawOddMessages(t, format.tree); i > 0 && rapid.Bool().Draw(t, "as before") {
						all[i] = all[i-1]
					}
					objects := written(all[i], format.object, format.user, format.answer)
					lines := format.file(i, all[i], objects)
					for k, o := range objects {
						want[o] = all[i][k].text
					}
					end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line end")
					if together = append(together, lines...); format.noID && i < len(all)-1 {
						continue
					} else if format.noID {
						lines = together
					}
					mark := rapid.SampledFrom([]string{"", "\ufeff"}).Draw(t, "mark")
					files = append(files, file{fmt.Sprintf("%d/%d.jsonl", i, i), []byte(mark + strings.Join(lines, end) + end)})
				}
				src := zipped(t, files...)
				o := importer.Options{Format: name, Prefix: fmt.Sprint(n, "/")} // the store has earlier conversations
				report, err := importer.Import(t.Context(), s, archive.Stream("x.zip", strings.NewReader(string(src))), o)
				require.NoError(t, err)
				require.Empty(t, report.Skipped)
				require.Empty(t, report.Repaired)
				require.Zero(t, report.Converted)
				require.Zero(t, report.Opaque)
				if name != "branch-files" && name != "oasst" {
					require.EqualValues(t, len(all), report.NewConversations)
				}
				found := make(map[string]bool)
				for thread, err := range s.Threads(t.Context(), lineage.ThreadQuery{}) {
					require.NoError(t, err)
					info, err := thread.Info(t.Context())
					require.NoError(t, err)
					if !strings.HasPrefix(info.SourceID, o.Prefix) {
						continue
					}
					for c, err := range thread.Contexts(t.Context()) {
						require.NoError(t, err)
						for e, err := range c.Entries(t.Context(), lineage.Window{}) {
							require.NoError(t, err)
							body, err := s.Original(t.Context(), e)
							require.NoError(t, err)
							if text, ok := want[string(body)]; ok {
								found[string(body)] = true
								requireSays(t, text, e, body)
							}
						}
					}
				}
				require.Len(t, found, len(want))
				again, err := importer.Import(t.Context(), s, archive.Stream("x.zip", strings.NewReader(string(src))), o)
				require.NoError(t, err)
				require.Zero(t, again.NewMessages)
				require.Zero(t, again.NewConversations)
			})
		})
	}
}

// requireSays requires that an entry has the text of a JSON string and nothing else, as text and as
// a message.
func requireSays(t require.TestingT, quoted string, e *lineage.Entry, body []byte) {
	var text string
	require.NoError(t, json.Unmarshal([]byte(quoted), &text))
	require.Equal(t, text, e.Excerpt(), "%q", body)
	messages := message.Decode(body, e.Type, e.Role)
	require.Len(t, messages, 1)
	require.Equal(t, text, messages[0].String(), "%q", body)
	require.Equal(t, e.Role, messages[0].Role, "%q", body)
}
