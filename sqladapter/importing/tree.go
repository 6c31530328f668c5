package importing

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
)

// withoutReserved removes replies in progress: assistant messages without parts and without successors, which a
// program has reserved as the head of a branch. The branch ends before them. Messages that come from a store are
// never removed.
func withoutReserved(ctx context.Context, db *sqladapter.DB, nodes []treeNode, reader *saidReader, l *chat.Loading) ([]treeNode, error) {
	parents, continued := make(map[string]chat.Ref, len(nodes)), make(map[string]bool)
	for _, n := range nodes {
		parents[n.ID] = chat.Ref(n.Parent)
		continued[n.Parent] = true
	}
	var heads []string
	for _, b := range l.Branches {
		if b.HeadMessageID != "" && !continued[string(b.HeadMessageID)] && reader.spanOf(string(b.HeadMessageID)) == "" {
			heads = append(heads, string(b.HeadMessageID))
		}
	}
	found, err := chatrows.ReadMessages(ctx, db, heads)
	if err != nil {
		return nil, err
	}
	isReserved := func(id string) bool {
		m, ok := found[id]
		return ok && m.ChatID == l.Chat.ID && m.Name == "assistant" && hasNoParts(m.Data)
	}
	for i := range l.Branches {
		if b := &l.Branches[i]; isReserved(string(b.HeadMessageID)) {
			b.HeadMessageID = parents[string(b.HeadMessageID)]
		}
	}
	l.Checkpoints = slices.DeleteFunc(l.Checkpoints, func(k chat.Checkpoint) bool { return isReserved(k.MessageID) })
	return slices.DeleteFunc(nodes, func(n treeNode) bool { return isReserved(n.ID) }), nil
}

// hasNoParts reports whether a message's JSON is an object with no members except id, role and
// metadata.
func hasNoParts(data json.RawMessage) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil || m == nil {
		return false
	}
	for key, value := range m {
		switch key {
		case "id", "role", "metadata", "createdAt":
		case "parts", "content":
			if v := string(value); v != "[]" && v != "null" && v != `""` {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// treeNode is a message with its parent.
type treeNode struct {
	chatrows.Edge
	createdAt int64
}

func scanNode(rows *sqladapter.Rows) (treeNode, error) {
	var n treeNode
	var parent sql.NullString
	err := rows.Scan(&n.ID, &parent, &n.createdAt)
	n.Parent = parent.String
	return n, err
}

// treeOrder returns the ids of messages in an order in which each comes after its parent, and a first child directly
// after it. cut are messages with a missing parent; they become roots. Messages in a circle are left out.
func treeOrder(nodes []treeNode, problem func(id, detail string)) (ordered []string, cut map[string]bool) {
	slices.SortFunc(nodes, func(a, b treeNode) int {
		return cmp.Or(cmp.Compare(a.createdAt, b.createdAt), cmp.Compare(a.ID, b.ID))
	})
	at := make(map[string]int, len(nodes))
	for i, n := range nodes {
		at[n.ID] = i
	}
	cut = make(map[string]bool)
	var roots []int
	children := make([][]int, len(nodes))
	for i, n := range nodes {
		parent, ok := at[n.Parent]
		switch {
		case n.Parent == "":
			roots = append(roots, i)
		case !ok:
			problem(n.ID, "its parent "+n.Parent+" is not in the chat; it becomes a first message")
			cut[n.ID] = true
			roots = append(roots, i)
		default:
			children[parent] = append(children[parent], i)
		}
	}
	ordered = make([]string, 0, len(nodes))
	stack := roots
	slices.Reverse(stack)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		ordered = append(ordered, nodes[i].ID)
		for _, child := range slices.Backward(children[i]) {
			stack = append(stack, child)
		}
	}
	if len(ordered) < len(nodes) {
		done := make(map[string]bool, len(ordered))
		for _, id := range ordered {
			done[id] = true
		}
		for _, n := range nodes {
			if !done[n.ID] {
				problem(n.ID, "it is its own ancestor")
			}
		}
	}
	return ordered, cut
}
