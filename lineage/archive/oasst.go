package archive

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// oasst reads message trees: a tree per line, {message_tree_id, prompt{text, role, replies[…]}}, or
// a message per line, which names its parent and may contain its replies.
func oasst() Format {
	return Format{
		Name: "oasst",
		Detect: func(h Head) bool {
			object := headObject(h)
			return has(object, "message_id", "text", "role") || has(object, "message_tree_id", "prompt")
		},
		Read: readOasst,
	}
}

// maxTrees limits the messages whose tree is remembered, for files whose messages do not name their
// tree.
const maxTrees = 1 << 20

func readOasst(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		var rows *Conversation // consecutive messages of a tree
		bytes := 0
		send := func(next string) bool {
			c := rows
			rows, bytes = nil, 0
			if c == nil {
				return true
			}
			c.Nodes, c.More = parentsFirst(c.Nodes), c.SourceID == next
			return yield(c, nil)
		}
		for c, err := range oasstItems(ctx, in) {
			row := err == nil && c.Metadata == nil
			if row && rows != nil && rows.SourceID == c.SourceID && bytes < partBytes && len(rows.Nodes) < partNodes {
				rows.Nodes, rows.Skipped = append(rows.Nodes, c.Nodes...), append(rows.Skipped, c.Skipped...)
				bytes += int(c.size())
				continue
			}
			next := ""
			if row {
				next = c.SourceID
			}
			if !send(next) {
				return
			}
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			rows, bytes = c, int(c.size())
		}
		send("")
	}
}

// parentsFirst returns nodes in order, but each after its parent.
func parentsFirst(nodes []Node) []Node {
	index := make(map[string]int, len(nodes))
	for i := range nodes {
		if _, taken := index[nodes[i].ID]; !taken {
			index[nodes[i].ID] = i
		}
	}
	out := make([]Node, 0, len(nodes))
	taken := make([]bool, len(nodes))
	var way []int
	for i := range nodes {
		for at, ok := i, true; ok && !taken[at]; at, ok = index[nodes[at].Parent] {
			taken[at] = true
			way = append(way, at)
		}
		for ; len(way) > 0; way = way[:len(way)-1] {
			out = append(out, nodes[way[len(way)-1]])
		}
	}
	return out
}

// oasstItems yields each item as a conversation.
func oasstItems(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
	trees := make(map[string]string)
	return eachItem(ctx, in, func(item Item) (*Conversation, error) {
		if !rawjson.IsObject(item.Raw) {
			return nil, malformed("not an object")
		}
		c := &Conversation{}
		var prompt []byte
		var more jsonObject
		for m := range rawjson.Members(item.Raw) {
			switch m.Key {
			case "prompt":
				if rawjson.IsObject(m.Value) {
					prompt = m.Value
					continue
				}
			case "message_tree_id":
				c.SourceID = rawjson.Str(m.Value)
				continue
			}
			more.add(m)
		}
		if prompt != nil {
			c.Metadata = more.bytes()
			if err := c.addOasst(prompt, "", item.At); err != nil {
				return nil, err
			}
			if c.SourceID == "" {
				c.SourceID = c.Nodes[0].ID
			}
			return c, nil
		}
		if err := c.addOasst(item.Raw, "", item.At); err != nil {
			return nil, err
		}
		first := &c.Nodes[0]
		if c.SourceID == "" {
			c.SourceID = trees[first.Parent]
		}
		if c.SourceID == "" {
			c.SourceID = first.ID
			if first.Parent != "" {
				c.SourceID = first.Parent
			}
		}
		for i := range c.Nodes {
			if len(trees) < maxTrees {
				trees[c.Nodes[i].ID] = c.SourceID
			}
		}
		return c, nil
	})
}

// addOasst adds a message and its replies.
func (c *Conversation) addOasst(raw []byte, parent string, at Position) error {
	n := Node{Parent: parent, At: at}
	n.Give(raw, "replies")
	var replies, body []byte
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "message_id":
			n.ID = rawjson.Str(m.Value)
		case "parent_id":
			if parent == "" {
				n.Parent = rawjson.Str(m.Value)
			}
		case "role":
			if n.Role = rawjson.Str(m.Value); n.Role == "prompter" {
				n.Role = "user"
			}
		case "text":
			body = m.Value
		case "replies":
			replies = m.Value
		case "created_date":
			n.Created = parseTime(m.Value)
		case "model_name":
			n.Model = rawjson.Str(m.Value)
		case "user_id":
			n.UserID = rawjson.Str(m.Value)
		}
	}
	switch {
	case n.ID == "":
		return malformed("message without an id")
	case n.Role == "":
		return malformed("message without a role")
	case body == nil:
		return malformed("message without a text")
	}
	n.Root = n.Parent == ""
	c.Nodes = append(c.Nodes, n)
	for reply := range rawjson.Elements(replies) {
		if err := c.addOasst(reply, n.ID, at); err != nil {
			inside := at
			inside.Inside = "reply to " + n.ID
			c.skip(inside, err)
		}
	}
	return nil
}
