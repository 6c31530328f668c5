package sqlchat

import (
	"cmp"
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
)

var graphSQL = struct{ messages sqladapter.Statement }{
	messages: `SELECT m."id", m."chatId", m."parentId", m."name", m."type", m."data", m."createdAt", ` +
		`o."userId", o."modelId", o."sourceId", o."derivedFrom" ` +
		`FROM "messages" m LEFT JOIN "lineage_origins" o ON {same:m.id=o.messageId} WHERE m."chatId" = ? {kept:m.chatId}`,
}

// Graph implements chat.Store.
func (s *store) Graph(ctx context.Context, chatID string) (g chat.Graph, err error) {
	err = s.db.Read(ctx, func(c *sqladapter.Conn) error {
		g = chat.Graph{ChatID: chatID, Branches: []chat.GraphBranch{}, Checkpoints: []chat.GraphCheckpoint{}}
		if g.Nodes, err = nodesOf(ctx, c, chatID); err != nil {
			return err
		}
		branches, err := chatrows.Branches(ctx, c, chatID)
		if err != nil {
			return err
		}
		for _, b := range branches {
			g.Branches = append(g.Branches, chat.GraphBranch{Name: b.Name, HeadMessageID: b.HeadMessageID, IsActive: b.IsActive})
		}
		checkpoints, err := chatrows.Checkpoints(ctx, c, chatID)
		for _, k := range slices.Backward(checkpoints) {
			g.Checkpoints = append(g.Checkpoints, chat.GraphCheckpoint{Name: k.Name, MessageID: k.MessageID})
		}
		return err
	})
	if err != nil {
		return chat.Graph{}, err
	}
	return g, nil
}

// nodesOf returns the messages of a chat as nodes, oldest first, and with equal times parents before
// children.
func nodesOf(ctx context.Context, c *sqladapter.Conn, chatID string) ([]chat.GraphNode, error) {
	nodes, links := []chat.GraphNode{}, []chatrows.Edge(nil)
	rows, err := c.Query(ctx, graphSQL.messages, chatID)
	if err != nil {
		return nodes, err
	}
	defer rows.Close()
	for rows.Next() {
		m, err := chatrows.ScanMessage(rows)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, m.Node())
		links = append(links, chatrows.Edge{ID: m.ID, Parent: string(m.ParentID)})
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	depths, err := chatrows.DepthsOf(links)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b chat.GraphNode) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(depths[a.ID], depths[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	return nodes, nil
}
