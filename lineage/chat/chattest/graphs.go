package chattest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
)

// feature: storage/graph
func testGraph(t *testing.T, s *store) {
	empty := chat.Graph{ChatID: "nobody", Nodes: []chat.GraphNode{}, Branches: []chat.GraphBranch{}, Checkpoints: []chat.GraphCheckpoint{}}
	require.Equal(t, empty, s.graph("nobody"))

	s.createChat("c")
	main := s.active("c")
	long := strings.Repeat("é", 60)
	for _, m := range []chat.Message{
		{ID: "a", Name: "user", Data: json.RawMessage(`{"parts":[{"type":"text","text":"one "},{"type":"file","url":"u"},{"type":"text","text":"two"}]}`), CreatedAt: 10},
		{ID: "b", ParentID: "a", Name: "assistant", Data: json.RawMessage(`{"parts":[{"type":"text","text":"` + long + `"}]}`), CreatedAt: 20},
		{ID: "c", ParentID: "a", Name: "user", Data: json.RawMessage(`"` + strings.Repeat("x", 50) + `"`), CreatedAt: 15},
	} {
		m.ChatID = "c"
		require.NoError(t, s.AddMessage(background, m))
	}
	require.NoError(t, s.UpdateBranchHead(background, "c", main.ID, "b"))
	s.createBranch(chat.Branch{ChatID: "c", Name: "side", CreatedAt: main.CreatedAt + 1})
	for at, name := range []string{"old", "new"} {
		_, err := s.CreateCheckpoint(background, chat.Checkpoint{ChatID: "c", Name: name, MessageID: "a", CreatedAt: int64(at + 1)})
		require.NoError(t, err)
	}
	require.Equal(t, chat.Graph{
		ChatID: "c",
		Nodes: []chat.GraphNode{
			{ID: "a", Role: "user", Content: "one two", CreatedAt: 10},
			{ID: "c", ParentID: "a", Role: "user", Content: strings.Repeat("x", 50), CreatedAt: 15},
			{ID: "b", ParentID: "a", Role: "assistant", Content: strings.Repeat("é", 50) + "...", CreatedAt: 20},
		},
		Branches:    []chat.GraphBranch{{Name: "main", HeadMessageID: "b", IsActive: true}, {Name: "side"}},
		Checkpoints: []chat.GraphCheckpoint{{Name: "old", MessageID: "a"}, {Name: "new", MessageID: "a"}},
	}, s.graph("c"))
}
