package lists

import (
	"cmp"
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// ShareGPT reads {"conversations": [{"from", "value"}]}. The list may have another name. A separate
// system prompt, {"system", "conversations"}, becomes the first message.
func ShareGPT() archive.Format {
	return archive.Format{
		Name: "sharegpt",
		Detect: func(h archive.Head) bool {
			for m := range rawjson.Members(h.Object()) {
				if isTurns(m.Value) {
					return true
				}
			}
			return false
		},
		Large: true,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return archive.EachItem(ctx, in, shareGPTConversation)
		},
	}
}

// isTurns reports whether a value, possibly truncated, is a list of turns.
func isTurns(list []byte) bool {
	first := rawjson.First(list)
	return rawjson.Has(first, "from", "value") || rawjson.Has(first, "from") && !rawjson.Has(first, "role")
}

// shareGPTRoles maps speakers to roles. Unknown ones are kept.
var shareGPTRoles = map[string]string{
	"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant", "assistant": "assistant",
	"function_call": "assistant", "observation": "tool", "tool": "tool", "system": "system",
}

func shareGPTConversation(item archive.Item) (*archive.Conversation, error) {
	c := &archive.Conversation{}
	var more archive.Fields
	found := false
	if prompt := rawjson.Get(item.Raw, "system"); rawjson.IsString(prompt) && len(prompt) > 2 {
		n := archive.Node{Role: "system", At: item.At, Metadata: []byte(`{"field":"system"}`)}
		n.Body, n.Type = archive.TextBody(item.Keep(prompt))
		c.Nodes = append(c.Nodes, n)
	}
	for m := range rawjson.Members(item.Raw) {
		if !found && (isTurns(m.Value) || m.Key == "conversations" && rawjson.IsArray(m.Value)) {
			found = true
			addNodes(c, m.Value, item, "turn", shareGPTNode)
			continue
		}
		switch m.Key {
		case "title":
			if c.Title = rawjson.Str(m.Value); c.Title != "" {
				continue
			}
		case "model":
			if c.Model = rawjson.Str(m.Value); c.Model != "" {
				continue
			}
		case "system":
			if rawjson.IsString(m.Value) && len(m.Value) > 2 {
				continue
			}
		}
		more.Add(m)
	}
	if !found {
		return nil, archive.Malformed("no conversations")
	}
	c.Keep(&more, item)
	return c, nil
}

func shareGPTNode(raw []byte, at archive.Position) (archive.Node, error) {
	n := archive.Node{At: at}
	if !rawjson.IsObject(raw) {
		return n, archive.Malformed("turn is not an object")
	}
	n.Give(raw)
	from, value := "", false
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "from":
			from = rawjson.Str(m.Value)
		case "value":
			value = true
		case "name":
			n.Name = rawjson.Str(m.Value)
		}
	}
	switch {
	case from == "":
		return n, archive.Malformed("turn without a speaker")
	case !value:
		return n, archive.Malformed("turn without a value")
	}
	n.Role = cmp.Or(shareGPTRoles[from], from)
	return n, nil
}
