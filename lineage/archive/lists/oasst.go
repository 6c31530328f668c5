package lists

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// OASST reads message trees: a tree per line, {message_tree_id, prompt{text, role, replies[…]}}, or
// a message per line, which names its parent and may contain its replies.
func OASST() archive.Format {
	return archive.Format{
		Name: "oasst",
		Detect: func(h archive.Head) bool {
			object := h.Object()
			return rawjson.Has(object, "message_id", "text", "role") || rawjson.Has(object, "message_tree_id", "prompt")
		},
		Read: readOasst,
	}
}

// maxTrees limits the messages whose tree is remembered. It applies to files whose messages do not state their tree.
const maxTrees = 1 << 20

func readOasst(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
	return func(yield func(*archive.Conversation, error) bool) {
		var rows *archive.Conversation // consecutive messages of a tree
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
			if row && rows != nil && rows.SourceID == c.SourceID && bytes < archive.PartBytes && len(rows.Nodes) < archive.PartNodes {
				rows.Nodes, rows.Skipped = append(rows.Nodes, c.Nodes...), append(rows.Skipped, c.Skipped...)
				bytes += int(c.Size())
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
			rows, bytes = c, int(c.Size())
		}
		send("")
	}
}

// parentsFirst returns the nodes in order, except that each node comes after its parent.
func parentsFirst(nodes []archive.Node) []archive.Node {
	index := make(map[string]int, len(nodes))
	for i := range nodes {
		if _, taken := index[nodes[i].ID]; !taken {
			index[nodes[i].ID] = i
		}
	}
	out := make([]archive.Node, 0, len(nodes))
	taken := make([]bool, len(nodes))
	var path []int
	for i := range nodes {
		for at, ok := i, true; ok && !taken[at]; at, ok = index[nodes[at].Parent] {
			taken[at] = true
			path = append(path, at)
		}
		for ; len(path) > 0; path = path[:len(path)-1] {
			out = append(out, nodes[path[len(path)-1]])
		}
	}
	return out
}

// oasstItems yields each item as a conversation.
func oasstItems(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
	trees := make(map[string]string)
	return archive.EachItem(ctx, in, func(item archive.Item) (*archive.Conversation, error) {
		if !rawjson.IsObject(item.Raw) {
			return nil, archive.Malformed("not an object")
		}
		c := &archive.Conversation{}
		var prompt []byte
		var more rawjson.Object
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
			more.Add(m)
		}
		if prompt != nil {
			c.Metadata = more.Bytes()
			if err := addOasst(c, prompt, "", item.At); err != nil {
				return nil, err
			}
			if c.SourceID == "" {
				c.SourceID = c.Nodes[0].ID
			}
			return c, nil
		}
		if err := addOasst(c, item.Raw, "", item.At); err != nil {
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
func addOasst(c *archive.Conversation, raw []byte, parent string, at archive.Position) error {
	n := archive.Node{Parent: parent, At: at}
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
			n.Created = archive.ParseTime(m.Value)
		case "model_name":
			n.Model = rawjson.Str(m.Value)
		case "user_id":
			n.UserID = rawjson.Str(m.Value)
		}
	}
	switch {
	case n.ID == "":
		return archive.Malformed("message without an id")
	case n.Role == "":
		return archive.Malformed("message without a role")
	case body == nil:
		return archive.Malformed("message without a text")
	}
	n.Root = n.Parent == ""
	c.Nodes = append(c.Nodes, n)
	for reply := range rawjson.Elements(replies) {
		if err := addOasst(c, reply, n.ID, at); err != nil {
			inside := at
			inside.Inside = "reply to " + n.ID
			c.Skip(inside, err)
		}
	}
	return nil
}
