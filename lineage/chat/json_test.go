package chat_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// The names of fields are documented.
func TestJSON(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{chat.Chat{ID: "c", UserID: "u", CreatedAt: 1, UpdatedAt: 2}, `{"id":"c","userId":"u","createdAt":1,"updatedAt":2}`},
		{chat.ChatInfo{Chat: chat.Chat{ID: "c", Title: "t", Metadata: json.RawMessage(`{"a":1}`)}, MessageCount: 3, BranchCount: 4},
			`{"id":"c","userId":"","title":"t","metadata":{"a":1},"createdAt":0,"updatedAt":0,"messageCount":3,"branchCount":4}`},
		{chat.Message{ID: "m", ChatID: "c", Name: "user", Data: json.RawMessage(`[]`), CreatedAt: 5},
			`{"id":"m","chatId":"c","parentId":null,"name":"user","data":[],"createdAt":5}`},
		{chat.Message{ID: "m", ParentID: "p", Type: "message", Data: json.RawMessage(`1`)},
			`{"id":"m","chatId":"","parentId":"p","name":"","type":"message","data":1,"createdAt":0}`},
		{chat.BranchInfo{Branch: chat.Branch{ID: "b", ChatID: "c", Name: "main", IsActive: true}, MessageCount: 2},
			`{"id":"b","chatId":"c","name":"main","headMessageId":null,"isActive":true,"createdAt":0,"messageCount":2}`},
		{chat.Checkpoint{ID: "k", ChatID: "c", Name: "n", MessageID: "m", CreatedAt: 1},
			`{"id":"k","chatId":"c","name":"n","messageId":"m","createdAt":1}`},
		{chat.GraphNode{ID: "m", Role: "user", Content: "hi"}, `{"id":"m","parentId":null,"role":"user","content":"hi","createdAt":0}`},
		{chat.GraphBranch{Name: "main", HeadMessageID: "m"}, `{"name":"main","headMessageId":"m","isActive":false}`},
		{chat.GraphCheckpoint{Name: "n", MessageID: "m"}, `{"name":"n","messageId":"m"}`},
	} {
		b, err := json.Marshal(test.value)
		require.NoError(t, err)
		require.Equal(t, test.want, string(b))
	}
	var m chat.Message
	require.NoError(t, json.Unmarshal([]byte(`{"id":"m","parentId":null}`), &m))
	require.Empty(t, m.ParentID)
	require.NoError(t, json.Unmarshal([]byte(`{"parentId":"p"}`), &m))
	require.Equal(t, chat.Ref("p"), m.ParentID)
	require.Error(t, json.Unmarshal([]byte(`{"parentId":1}`), &m))
}

// feature: storage/graph-preview
func TestPreview(t *testing.T) {
	for data, want := range map[string]string{
		`{"parts":[]}`: "",
		`{"parts":[{"type":"reasoning","text":"no"},{"type":"text","text":"yes"}]}`:                        "yes",
		`{"parts":[{"type":"text","text":"one."},{"type":"text","text":""},{"type":"text","text":"Two"}]}`: "one. Two",
		`{ "a" : [ 1 ] }`:                   `{"a":[1]}`,
		`"text"`:                            "text",
		`{"role":"user","content":"hi"}`:    "hi",
		`{"role":"assistant","content":""}`: "",
		`{"author":{"role":"user"},"content":{"content_type":"text","parts":["hi"]},"id":"m"}`:                    "hi",
		`{"role":"tool","tool_call_id":"c","content":"found"}`:                                                    "← found",
		`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"Bash","input":{"command":"ls -l"}}]}`: "→ Bash ls -l",
		`{"message_id":"m","text":"hi","role":"prompter","lang":"en"}`:                                            "hi",
		`null`:   "",
		`7`:      "7",
		`broken`: "",
	} {
		require.Equal(t, want, chat.Preview(json.RawMessage(data)), data)
	}
}

func FuzzPreview(f *testing.F) {
	for _, seed := range []string{`{"parts":[{"type":"text","text":"é"}]}`, `"x"`, `{}`, `[`, "\xff", `{"parts":"no"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		require.LessOrEqual(t, len([]rune(chat.Preview(data))), 53)
	})
}

// A value found at a key must be found by the filter for it.
func FuzzMetadataFilter(f *testing.F) {
	for _, seed := range []string{`{"k":1}`, `{"k":1e400}`, `{"k":"\ud800"}`, `{"k":{"k":true}}`, `{"k":1e999999999}`, `[]`, `{"k":null}`, `{"k":0.10}`} {
		f.Add("k", []byte(seed))
		f.Add("k.k", []byte(seed))
	}
	f.Fuzz(func(t *testing.T, key string, metadata []byte) {
		filter := chat.MetadataFilter{Key: key}
		none := filter.Matches(metadata)
		for _, value := range []any{"", "1", 1, 0.1, true, json.Number("1e400")} {
			filter.Value = value
			require.False(t, filter.Matches(metadata) && none, "both there and not")
		}
		var object map[string]json.RawMessage
		var text string
		if json.Unmarshal(metadata, &object) == nil && json.Unmarshal(object["k"], &text) == nil && string(object["k"]) != "null" {
			require.True(t, chat.MetadataFilter{Key: "k", Value: text}.Matches(metadata))
		}
	})
}

func FuzzRef(f *testing.F) {
	for _, seed := range []string{`null`, `""`, `"m"`, `"\u0000"`, `1`, `{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again chat.Ref
		if json.Unmarshal(b, &r) != nil {
			return
		}
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, r, again)
	})
}
