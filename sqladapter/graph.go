package sqladapter

import (
	"cmp"
	"context"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
)

// Graph implements chat.Store.
func (s *chatStore) Graph(ctx context.Context, chatID string) (g chat.Graph, err error) {
	err = s.db.Read(ctx, func(c *Conn) error {
		g = chat.Graph{ChatID: chatID, Branches: []chat.GraphBranch{}, Checkpoints: []chat.GraphCheckpoint{}}
		if g.Nodes, err = c.nodes(ctx, chatID); err != nil {
			return err
		}
		branches, err := c.branches(ctx, chatID)
		if err != nil {
			return err
		}
		for _, b := range branches {
			g.Branches = append(g.Branches, chat.GraphBranch{Name: b.Name, HeadMessageID: b.HeadMessageID, IsActive: b.IsActive})
		}
		checkpoints, err := collect(ctx, c, scanCheckpoint, checkpointSQL.ofChat, chatID)
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

// nodes returns the messages of a chat as nodes, oldest first, and with equal times parents before
// children.
func (c *Conn) nodes(ctx context.Context, chatID string) ([]chat.GraphNode, error) {
	nodes, links := []chat.GraphNode{}, []link(nil)
	rows, err := c.Query(ctx, messageSQL.ofChat, chatID)
	if err != nil {
		return nodes, matched(err)
	}
	defer rows.Close()
	for rows.Next() {
		m, err := scanMessage(rows)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, m.Node())
		links = append(links, link{m.ID, string(m.ParentID)})
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	depths, err := depthsOf(links)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b chat.GraphNode) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(depths[a.ID], depths[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	return nodes, nil
}
