package importer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

type object = map[string]any

// A generated message often has the same text as others and differs in other fields.
type generated struct {
	id, text string
	parent   int // -1 for none
	second   int
	weight   int
	user     bool
}

func generateMessages(t *rapid.T, tree bool) []generated {
	out := make([]generated, rapid.IntRange(1, 6).Draw(t, "messages"))
	for i := range out {
		out[i] = generated{
			id: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "id") + fmt.Sprint(i), text: rapid.SampledFrom([]string{"hi", "yes", "ok"}).Draw(t, "text"),
			parent: i - 1, second: rapid.IntRange(0, 2).Draw(t, "second"), weight: rapid.IntRange(-1, 1).Draw(t, "weight"), user: i%2 == 0,
		}
		if tree && i > 0 {
			out[i].parent = rapid.IntRange(0, i-1).Draw(t, "parent")
		}
	}
	return out
}

func (g generated) role(user, assistant string) string {
	if g.user {
		return user
	}
	return assistant
}

// seconds is the time of the message as a number, RFC3339 as text.
func (g generated) seconds() int { return 1_700_000_000 + g.second }
func (g generated) rfc3339() string {
	return time.Unix(int64(g.seconds()), 0).UTC().Format(time.RFC3339)
}

func (g generated) parentID(messages []generated, none any) any {
	if g.parent < 0 {
		return none
	}
	return messages[g.parent].id
}

// weighted adds a weight if there is one.
func (g generated) weighted(o object) object {
	if g.weight >= 0 {
		o["weight"] = g.weight
	}
	return o
}

func each(messages []generated, write func(g generated) object) []object {
	out := make([]object, len(messages))
	for i, g := range messages {
		out[i] = write(g)
	}
	return out
}

// families write conversations in the formats.
var families = map[string]struct {
	tree bool
	file func(all [][]generated) any // a value, or a list of lines
}{
	"openai": {false, func(all [][]generated) any {
		var lines []object
		for _, c := range all {
			lines = append(lines, object{"messages": each(c, func(g generated) object {
				return g.weighted(object{"role": g.role("user", "assistant"), "content": g.text})
			})})
		}
		return lines
	}},
	"sharegpt": {false, func(all [][]generated) any {
		var list []object
		for _, c := range all {
			list = append(list, object{"conversations": each(c, func(g generated) object {
				return g.weighted(object{"from": g.role("human", "gpt"), "value": g.text})
			})})
		}
		return [][]object{list}
	}},
	"turns": {false, func(all [][]generated) any {
		var lines []object
		for _, c := range all {
			lines = append(lines, object{"history": each(c, func(g generated) object { return g.weighted(object{"user": g.text, "bot": "so"}) })})
		}
		return lines
	}},
	"preferences": {false, func(all [][]generated) any {
		var lines []object
		for _, c := range all {
			list := each(c, func(g generated) object {
				return g.weighted(object{"role": g.role("user", "assistant"), "content": g.text})
			})
			lines = append(lines, object{"chosen": list, "rejected": append(slices.Clone(list[:len(list)-1]), object{"role": "user", "content": "no"})})
		}
		return lines
	}},
	"chatgpt": {true, func(all [][]generated) any {
		var list []object
		for i, c := range all {
			mapping := object{"root": object{"id": "root", "message": nil, "parent": nil}}
			for _, g := range c {
				mapping[g.id] = object{"id": g.id, "parent": g.parentID(c, "root"), "message": g.weighted(object{
					"id": g.id, "author": object{"role": g.role("user", "assistant")}, "create_time": g.seconds(),
					"content": object{"content_type": "text", "parts": []string{g.text}}, "metadata": object{"model_slug": g.role("", "gpt")},
				})}
			}
			list = append(list, object{"id": fmt.Sprint("c", i), "title": fmt.Sprint("t", i), "create_time": 1_600_000_000 + i, "mapping": mapping, "current_node": c[len(c)-1].id})
		}
		return [][]object{list}
	}},
	"deepseek": {true, func(all [][]generated) any {
		var list []object
		for i, c := range all {
			mapping := object{"root": object{"id": "root", "message": nil, "parent": nil}}
			for _, g := range c {
				mapping[g.id] = object{"id": g.id, "parent": g.parentID(c, "root"), "message": g.weighted(object{
					"inserted_at": g.rfc3339(), "model": "m", "fragments": []object{{"type": g.role("REQUEST", "RESPONSE"), "content": g.text}},
				})}
			}
			list = append(list, object{"id": fmt.Sprint("c", i), "title": fmt.Sprint("t", i), "inserted_at": "2024-01-01T00:00:00+08:00", "mapping": mapping})
		}
		return [][]object{list}
	}},
	"grok": {true, func(all [][]generated) any {
		var list []object
		for i, c := range all {
			list = append(list, object{"conversation": object{"id": fmt.Sprint("c", i), "title": "n", "user_id": fmt.Sprint("u", i%2)}, "responses": each(c, func(g generated) object {
				return object{"response": g.weighted(object{"_id": g.id, "message": g.text, "sender": g.role("human", "grok-4"),
					"create_time": object{"$date": object{"$numberLong": fmt.Sprint(int64(g.seconds() * 1000))}}, "parent_response_id": g.parentID(c, "")})}
			})})
		}
		return []object{{"conversations": list}}
	}},
	"claude": {true, func(all [][]generated) any {
		var list []object
		for i, c := range all {
			list = append(list, object{"uuid": fmt.Sprint("c", i), "name": "n", "account": object{"uuid": fmt.Sprint("a", i%2)}, "created_at": "2024-01-01T00:00:00Z",
				"chat_messages": each(c, func(g generated) object {
					return g.weighted(object{"uuid": g.id, "text": g.text, "sender": g.role("human", "assistant"), "created_at": g.rfc3339(), "parent_message_uuid": g.parentID(c, "00000000-0000-4000-8000-000000000000")})
				})})
		}
		return [][]object{list}
	}},
	"open-webui": {true, func(all [][]generated) any {
		var list []object
		for i, c := range all {
			messages := object{}
			for _, g := range c {
				messages[g.id] = g.weighted(object{"id": g.id, "parentId": g.parentID(c, nil), "role": g.role("user", "assistant"), "content": g.text, "timestamp": g.seconds()})
			}
			list = append(list, object{"id": fmt.Sprint("c", i), "user_id": fmt.Sprint("u", i%2), "created_at": 1_600_000_000 + i,
				"chat": object{"history": object{"messages": messages, "currentId": c[len(c)-1].id}}})
		}
		return [][]object{list}
	}},
	"librechat": {true, func(all [][]generated) any {
		var lines []object
		for i, c := range all {
			lines = append(lines, object{"conversationId": fmt.Sprint("c", i), "endpoint": "e", "exportAt": "x", "messages": each(c, func(g generated) object {
				return g.weighted(object{"messageId": g.id, "parentMessageId": g.parentID(c, "00000000-0000-0000-0000-000000000000"), "text": g.text, "isCreatedByUser": g.user, "createdAt": g.rfc3339()})
			})})
		}
		return lines
	}},
}

// lineFamilies have a file per conversation.
var lineFamilies = map[string]func(i int, c []generated) []object{
	"claude-code": func(i int, c []generated) []object {
		return each(c, func(g generated) object {
			return g.weighted(object{"type": g.role("user", "assistant"), "uuid": g.id, "parentUuid": g.parentID(c, nil), "sessionId": fmt.Sprint("c", i), "timestamp": g.rfc3339(),
				"message": object{"role": g.role("user", "assistant"), "content": g.text}})
		})
	},
	"codex": func(i int, c []generated) []object {
		meta := object{"id": fmt.Sprint("c", i), "cwd": "/w"}
		if i > 0 {
			meta["forked_from_id"] = "c0"
		}
		return append([]object{{"timestamp": "2024-01-01T00:00:00Z", "type": "session_meta", "payload": meta}}, each(c, func(g generated) object {
			return object{"timestamp": g.rfc3339(), "type": "response_item", "payload": g.weighted(object{"type": "message", "role": g.role("user", "assistant"),
				"content": []object{{"type": "input_text", "text": g.text}}})}
		})...)
	},
	"pi": func(i int, c []generated) []object {
		header := object{"type": "session", "version": 3, "id": fmt.Sprint("c", i), "timestamp": "2024-01-01T00:00:00Z", "cwd": "/w"}
		if i > 0 {
			header["parentSession"] = "/s/--w--/2024-01-01T00-00-00-000Z_c0.jsonl"
		}
		return append([]object{header}, each(c, func(g generated) object {
			return object{"type": "message", "id": g.id, "parentId": g.parentID(c, nil), "timestamp": g.rfc3339(),
				"message": g.weighted(object{"role": g.role("user", "assistant"), "content": []object{{"type": "text", "text": g.text}}})}
		})...)
	},
	"branch-files": func(i int, c []generated) []object {
		return []object{{"id": fmt.Sprint("b", i), "name": "b", "createdAt": "2024-01-01T00:00:00Z", "messages": each(c, func(g generated) object {
			return g.weighted(object{"role": g.role("user", "assistant"), "content": g.text})
		})}}
	},
}

func jsonLines(t require.TestingT, values any) []byte {
	var b strings.Builder
	write := func(v any) {
		line, err := json.Marshal(v)
		require.NoError(t, err)
		b.Write(append(line, '\n'))
	}
	switch values := values.(type) {
	case []object:
		for _, v := range values {
			write(v)
		}
	case [][]object:
		for _, v := range values {
			write(v)
		}
	}
	return []byte(b.String())
}

// shownThread and shownConversation return everything specific to a thread or to a conversation
// that was read.
func shownThread(t require.TestingT, s *lineage.Store, thread *lineage.Thread, id string) string {
	info, err := thread.Info(context.Background())
	require.NoError(t, err)
	all, active := histories(t, s, thread)
	metadata := make(map[string]json.RawMessage)
	require.NoError(t, json.Unmarshal(info.Metadata, &metadata))
	delete(metadata, "_archive")
	if strings.HasPrefix(id, "sha256:") {
		id = ""
	}
	return shownOwn(id, info.Title, info.UserID, metadata, all, active)
}

func shownConversation(t require.TestingT, c *archive.Conversation) string {
	metadata := make(map[string]json.RawMessage)
	if c.Metadata != nil {
		require.NoError(t, json.Unmarshal(c.Metadata, &metadata))
	}
	e := expect(c)
	for i := range c.Nodes {
		if c.Nodes[i].Branch == "main" { // the current branch
			only := *c
			only.Nodes = c.Nodes[:i+1]
			e.current = expect(&only).current
		}
	}
	return shownOwn(c.SourceID, c.Title, c.UserID, metadata, e.leaves, e.current)
}

func shownOwn(id, title, user string, metadata map[string]json.RawMessage, histories map[string]bool, current string) string {
	var longest []string
	for h := range histories {
		inner := h == ""
		for other := range histories {
			inner = inner || h != other && strings.HasPrefix(other, h)
		}
		if !inner {
			longest = append(longest, h)
		}
	}
	slices.Sort(longest)
	about, _ := json.Marshal(metadata)
	return fmt.Sprintf("%q %q %q %s\n%s\ncurrent\n%s", id, title, user, about, strings.Join(longest, "\n"), current)
}

// For every format, and for very similar conversations, each thread has exactly the archive's ids,
// times, metadata and branches, and importing again adds nothing.
func TestEveryFormatKeepsConversationsApart(t *testing.T) {
	check := func(name string, tree bool, write func(t *rapid.T, all [][]generated) []byte) {
		t.Run(name, func(t *testing.T) {
			s, n := storetest.New(t), 0
			rapid.Check(t, func(t *rapid.T) {
				n++
				o := importer.Options{Prefix: fmt.Sprintf("%d/", n)} // the store has earlier conversations
				all := make([][]generated, rapid.IntRange(1, 4).Draw(t, "conversations"))
				for i := range all {
					all[i] = generateMessages(t, tree)
					if i > 0 && rapid.Bool().Draw(t, "goes on") {
						all[i] = slices.Concat(all[i-1], nil)
					}
				}
				text := string(write(t, all))
				var want []string
				for c, err := range archive.Read(context.Background(), archive.Stream("", strings.NewReader(text)), archive.ReadOptions{Formats: formats.All()}) {
					require.NoError(t, err)
					require.Empty(t, c.Repairs)
					want = append(want, shownConversation(t, c))
				}
				made := func() importer.Report {
					report, err := importer.Import(context.Background(), s, archive.Stream("", strings.NewReader(text)), o)
					require.NoError(t, err)
					require.Equal(t, []string{name}, report.Formats)
					require.Empty(t, report.Skipped)
					require.Empty(t, report.Repaired)
					require.EqualValues(t, len(want), report.Conversations)
					return report
				}
				require.EqualValues(t, len(want), made().NewConversations)
				var got []string
				for thread, err := range s.Threads(context.Background(), lineage.ThreadQuery{}) {
					require.NoError(t, err)
					info, err := thread.Info(context.Background())
					require.NoError(t, err)
					if id, ok := strings.CutPrefix(info.SourceID, o.Prefix); ok {
						got = append(got, shownThread(t, s, thread.Thread, id))
					}
				}
				slices.Sort(want)
				slices.Sort(got)
				require.Equal(t, want, got)
				head, err := s.View().Head(context.Background())
				require.NoError(t, err)
				require.Zero(t, made().NewMessages)
				now, err := s.View().Head(context.Background())
				require.NoError(t, err)
				require.Equal(t, head, now)
			})
		})
	}
	for name, family := range families {
		check(name, family.tree, func(t *rapid.T, all [][]generated) []byte { return jsonLines(t, family.file(all)) })
	}
	for name, write := range lineFamilies {
		check(name, slices.Contains([]string{"claude-code", "pi"}, name), func(t *rapid.T, all [][]generated) []byte {
			var files []file
			for i, c := range all {
				files = append(files, file{fmt.Sprintf("%d/%d.jsonl", i, i), jsonLines(t, write(i, c))})
			}
			return zipped(t, files...)
		})
	}
}
