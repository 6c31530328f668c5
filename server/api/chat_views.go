package api

import (
	"context"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
)

// chatGraph is everything in a chat, oldest first, for drawing.
type chatGraph struct {
	Chat        string             `json:"chat"`
	Nodes       []chatGraphNode    `json:"nodes"`
	Branches    []chatGraphBranch  `json:"branches"`
	Checkpoints []chatGraphPointer `json:"checkpoints"`
}

// RecordType implements records.Record.
func (*chatGraph) RecordType() string { return "chat_graph" }

// chatGraphNode is a message, shortened.
type chatGraphNode struct {
	ID     string  `json:"id"`
	Parent *string `json:"parent"`
	Role   string  `json:"role"`
	// Preview is the start of its text.
	Preview   string    `json:"preview"`
	CreatedAt time.Time `json:"created_at"`
}

type chatGraphBranch struct {
	Name   string  `json:"name"`
	Head   *string `json:"head"`
	Active bool    `json:"active"`
}

type chatGraphPointer struct {
	Name    string `json:"name"`
	Message string `json:"message"`
}

func (a *API) chatGraph(ctx context.Context, c *call, in *ofThread) (*chatGraph, error) {
	out := &chatGraph{Nodes: []chatGraphNode{}, Branches: []chatGraphBranch{}, Checkpoints: []chatGraphPointer{}}
	err := c.inChat(ctx, in.Thread, func(chats chat.Store, names *chatOf) error {
		g, err := chats.Graph(ctx, names.id)
		out.Chat = names.scope.Chosen(names.id)
		for _, n := range g.Nodes {
			out.Nodes = append(out.Nodes, chatGraphNode{n.ID, orNull(n.ParentID), n.Role, n.Content, at(n.CreatedAt)})
		}
		for _, b := range g.Branches {
			out.Branches = append(out.Branches, chatGraphBranch{b.Name, orNull(b.HeadMessageID), b.IsActive})
		}
		for _, k := range g.Checkpoints {
			out.Checkpoints = append(out.Checkpoints, chatGraphPointer{k.Name, k.MessageID})
		}
		return err
	})
	return out, err
}

type chatSearchQuery struct {
	ofThread
	Text  string   `json:"-" query:"q" doc:"what to search for"`
	Roles []string `json:"-" query:"role" doc:"only messages of this role"`
	Limit int      `json:"-" query:"limit" doc:"at most so many; default 100, at most 1000"`
}

func (a *API) searchChat(ctx context.Context, c *call, in *chatSearchQuery) (*list[*chatMessage], error) {
	if in.Limit < 0 {
		return nil, fmt.Errorf("limit %d: %w", in.Limit, lineage.ErrInvalid)
	}
	p, out := listPage{Limit: in.Limit}, &list[*chatMessage]{}
	err := c.inChat(ctx, in.Thread, func(_ chat.Store, names *chatOf) error {
		texts := 0
		for found, err := range a.o.SearchChat(ctx, names.id, in.Text, chat.SearchOptions{Roles: in.Roles, Limit: p.size()}) {
			if err != nil {
				return err
			}
			texts += len(found.Message.Data)
			if len(out.Items) > 0 && texts > maxTexts {
				break // the best are there
			}
			r := ofChatMessage(&found.Message)
			r.Rank, r.Snippet = &found.Rank, found.Snippet
			out.Items = append(out.Items, r)
		}
		return nil
	})
	return out, err
}
