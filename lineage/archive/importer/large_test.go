package importer_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// largeFormats have all messages of a conversation in one value. Each joins messages to an archive; fill is a message without
// anything special, odd are others with a %s for their id and their parent's.
var largeFormats = []struct {
	name       string
	join       func(messages []string, current string) string
	fill       string
	odd        []string
	unlinked   bool // messages do not name their parents
	identified bool // the conversation has an id
}{
	{
		"chatgpt", func(m []string, current string) string {
			return `[{"conversation_id":"c","current_node":"` + current + `","mapping":{` + strings.Join(m, ",") + `}}]`
		},
		`"%[1]s":{"id":"%[1]s","parent":"%[2]s","message":{"author":{"role":"user"},"content":{"parts":["fill"]}}}`,
		[]string{
			`"%[1]s":{"parent":"%[2]s","message":{"author":{"role":"tool","name":"\u00fc"},"create_time":1.5e9,"metadata":{"model_slug":"gpt"},"content":{"parts":["odd"]}},"other":[1]}`,
			`"%[1]s":{"parent":"%[2]s","message":{"content":{"parts":["\ud800"]}}}`,
		}, false, true,
	},
	{
		"deepseek", func(m []string, current string) string {
			return `[{"id":"c","inserted_at":"2026-01-01T00:00:00Z","mapping":{` + strings.Join(m, ",") + `}}]`
		},
		`"%[1]s":{"parent":"%[2]s","message":{"fragments":[{"type":"RESPONSE","content":"fill"}],"inserted_at":"2026-02-02T03:04:05Z"}}`,
		[]string{
			`"%[1]s":{"parent":"%[2]s","message":{"fragments":[{"type":"REQUEST","content":"odd"}],"inserted_at":"2026-01-02T03:04:05Z","model":"m"},"other":[1]}`,
			`"%[1]s":{"parent":"%[2]s","message":{"fragments":[{"type":"THINK","content":"odd"}]}}`,
		}, false, true,
	},
	{
		"grok", func(m []string, current string) string {
			return `{"conversations":[{"conversation":{"id":"c","leaf_response_id":"` + current + `"},"responses":[` + strings.Join(m, ",") + `]}]}`
		},
		`{"response":{"_id":"%[1]s","parent_response_id":"%[2]s","message":"fill","sender":"assistant"}}`,
		[]string{
			`{"response":{"_id":"%[1]s","parent_response_id":"%[2]s","message":"odd","sender":"human","create_time":{"$date":{"$numberLong":"1752112685600"}}},"share_link":{"id":"s"}}`,
			`{"response":{"_id":"%[1]s","parent_response_id":"%[2]s","message":"odd","model":"m"}}`,
		}, false, true,
	},
	{
		"librechat", func(m []string, current string) string {
			return `{"conversationId":"c","endpoint":"e","messages":[` + strings.Join(m, ",") + `]}`
		},
		`{"messageId":"%[1]s","parentMessageId":"%[2]s","text":"fill"}`,
		[]string{
			`{"messageId":"%[1]s","parentMessageId":"%[2]s","text":"odd","isCreatedByUser":true,"createdAt":"2026-01-02T03:04:05Z"}`,
			`{"messageId":"%[1]s","parentMessageId":"%[2]s","text":"odd","model":"m","children":[],"x":{}}`,
		}, false, true,
	},
	{
		"open-webui", func(m []string, current string) string {
			return `[{"id":"c","chat":{"history":{"messages":{` + strings.Join(m, ",") + `},"currentId":"` + current + `"}}}]`
		},
		`"%[1]s":{"id":"%[1]s","parentId":"%[2]s","role":"user","content":"fill"}`,
		[]string{
			`"%[1]s":{"parentId":"%[2]s","childrenIds":["z"],"role":"assistant","content":"odd","model":"m","timestamp":1700000000}`,
			`"%[1]s":{"parentId":"%[2]s","content":"odd"}`,
		}, false, true,
	},
	{
		"claude", func(m []string, current string) string {
			return `[{"uuid":"c","name":"n","current_leaf_message_uuid":"` + current + `","chat_messages":[` + strings.Join(m, ",") + `]}]`
		},
		`{"uuid":"%[1]s","parent_message_uuid":"%[2]s","sender":"human","text":"fill"}`,
		[]string{
			`{"uuid":"%[1]s","parent_message_uuid":"%[2]s","sender":"human","text":"odd","created_at":"2026-01-02T03:04:05Z","attachments":[{"file_name":"f","extracted_content":"inside"}]}`,
			`{"uuid":"%[1]s","parent_message_uuid":"%[2]s","sender":"assistant","model":"m","text":"odd"}`,
		}, false, true,
	},
	{
		"openai", func(m []string, current string) string {
			return `{"messages":[` + strings.Join(m, ",") + `],"large":"` + strings.Repeat("x", 4096) + `"}`
		},
		`{"role":"user","content":"fill","id":"%[1]s"}`,
		[]string{
			`{"role":"assistant","content":"odd","id":"%[1]s","model":"m","timestamp":1700000000}`,
			`{"type":"reasoning","summary":["odd"],"id":"%[1]s"}`,
			`{"role":"tool","name":"t","content":"no id"}`,
		}, true, false,
	},
	{
		"sharegpt", func(m []string, current string) string {
			return `{"id":"c","conversations":[` + strings.Join(m, ",") + `]}`
		},
		`{"from":"human","value":"fill"}`,
		[]string{`{"from":"gpt","value":"odd","weight":1}`, `{"from":"system","value":"odd"}`}, true, false,
	},
}

// Messages are read the same way wherever they are in a large conversation, each time; and importing it again adds nothing.
func TestLargeConversations(t *testing.T) {
	const large = 2*archive.PartNodes + 100
	for _, f := range largeFormats {
		t.Run(f.name, func(t *testing.T) {
			message := func(text string, i int, parent string) string {
				if !strings.Contains(text, "%") {
					return text
				}
				if !strings.Contains(text, "%[2]s") {
					return fmt.Sprintf(text, fmt.Sprint("m", i))
				}
				return fmt.Sprintf(text, fmt.Sprint("m", i), parent)
			}
			var few, many []string
			for i, text := range f.odd {
				parent := ""
				if i > 0 {
					parent = fmt.Sprint("m", i-1)
				}
				few = append(few, message(text, i, parent))
			}
			for i := range large - len(f.odd) {
				many = append(many, message(f.fill, large+i, fmt.Sprint("m", large+i-1)))
			}
			after := slices.Concat(many, few)
			bad := slices.Concat(after, []string{`"bad":7`})
			if !strings.HasPrefix(f.fill, `"`) {
				bad[len(bad)-1] = "7"
			}

			read := func(messages []string) (*archive.Conversation, []archive.Node) {
				all, damages := readAll(t, archive.Stream("made.json", strings.NewReader(f.join(messages, ""))), importer.Options{Format: f.name})
				require.Empty(t, damages)
				require.Len(t, all, 1)
				var nodes []archive.Node
				for range 2 {
					nodes = nil
					for some := range all[0].Parts() {
						require.LessOrEqual(t, len(some), archive.PartNodes)
						nodes = append(nodes, some...)
					}
				}
				return all[0], nodes
			}
			_, alone := read(few)
			c, whole := read(bad)
			require.NotNil(t, c.Rest)
			require.Len(t, c.Skipped, 1)
			require.GreaterOrEqual(t, len(whole), large)
			at := 0
			for i := range alone {
				got := &alone[i]
				k := slices.IndexFunc(whole[at:], func(n archive.Node) bool { return string(n.Body) == string(got.Body) && n.Name == got.Name })
				require.GreaterOrEqual(t, k, 0, "%s", got.Body)
				at += k
				n := whole[at]
				require.Greater(t, at, archive.PartNodes, "it was made again")
				n.At, got.At = archive.Position{}, archive.Position{}
				if f.unlinked || i == 0 {
					n.Parent, got.Parent, n.Root, got.Root = "", "", false, false
				}
				require.Equal(t, *got, n)
			}

			s := storetest.New(t)
			source := func() archive.Source { return archive.Stream("made.json", strings.NewReader(f.join(after, ""))) }
			report, err := importer.Import(context.Background(), s, source(), importer.Options{Format: f.name})
			require.NoError(t, err)
			require.EqualValues(t, large, report.NewMessages)
			report, err = importer.Import(context.Background(), s, source(), importer.Options{Format: f.name})
			require.NoError(t, err)
			require.Zero(t, report.NewMessages)
			require.Zero(t, report.NewConversations)
		})
	}
}
