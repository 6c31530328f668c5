package archive

import (
	"cmp"
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// shareGPT reads {"conversations": [{"from", "value"}]}. The list may have another name. A separate
// system prompt, {"system", "conversations"}, becomes the first message.
func shareGPT() Format {
	return Format{
		Name: "sharegpt",
		Detect: func(h Head) bool {
			for m := range rawjson.Members(headObject(h)) {
				if isTurns(m.Value) {
					return true
				}
			}
			return false
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return eachItem(ctx, in, shareGPTConversation)
		},
	}
}

// isTurns reports whether a value, possibly truncated, is a list of turns.
func isTurns(list []byte) bool {
	first := firstElement(list)
	return has(first, "from", "value") || has(first, "from") && !has(first, "role")
}

// shareGPTRoles maps speakers to roles. Unknown ones are kept.
var shareGPTRoles = map[string]string{
	"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant", "assistant": "assistant",
	"function_call": "assistant", "observation": "tool", "tool": "tool", "system": "system",
}

func shareGPTConversation(item Item) (*Conversation, error) {
	c := &Conversation{}
	var more fields
	found := false
	if prompt := rawjson.Get(item.Raw, "system"); rawjson.IsString(prompt) && len(prompt) > 2 {
		n := Node{Role: "system", At: item.At, Metadata: []byte(`{"field":"system"}`)}
		n.Body, n.Type = textBody(prompt)
		c.Nodes = append(c.Nodes, n)
	}
	for m := range rawjson.Members(item.Raw) {
		if !found && (isTurns(m.Value) || m.Key == "conversations" && rawjson.IsArray(m.Value)) {
			found = true
			c.addShareGPT(m.Value, item.At)
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
		more.add(m)
	}
	if !found {
		return nil, malformed("no conversations")
	}
	c.keep(&more, item.At)
	return c, nil
}

func (c *Conversation) addShareGPT(list []byte, at Position) {
	i := 0
	for raw := range rawjson.Elements(list) {
		i++
		at := at.inside("turn", i)
		n, err := shareGPTNode(raw, at)
		if err != nil {
			c.skip(at, err)
			continue
		}
		c.Nodes = append(c.Nodes, n)
	}
}

func shareGPTNode(raw []byte, at Position) (Node, error) {
	n := Node{At: at}
	if !rawjson.IsObject(raw) {
		return n, malformed("turn is not an object")
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
		return n, malformed("turn without a speaker")
	case !value:
		return n, malformed("turn without a value")
	}
	n.Role = cmp.Or(shareGPTRoles[from], from)
	return n, nil
}
