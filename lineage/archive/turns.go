package archive

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// turns reads dialogues of questions and answers: {"history": [{"user", "bot"}]}.
func turns() Format {
	return Format{
		Name: "turns",
		Detect: func(h Head) bool {
			first := firstElement(rawjson.Get(headObject(h), "history"))
			return has(first, "user") || has(first, "bot")
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return eachItem(ctx, in, turnsConversation)
		},
	}
}

func turnsConversation(item Item) (*Conversation, error) {
	c := &Conversation{}
	var history []byte
	var task, id string
	var more fields
	for m := range rawjson.Members(item.Raw) {
		switch m.Key {
		case "history":
			if rawjson.IsArray(m.Value) {
				history = m.Value
				continue
			}
		case "task":
			task = scalar(m.Value)
		case "id":
			id = scalar(m.Value)
		}
		more.add(m)
	}
	if history == nil {
		return nil, malformed("no history")
	}
	c.Title = titled(task, id)
	i := 0
	for raw := range rawjson.Elements(history) {
		i++
		at := item.At.inside("turn", i)
		if !rawjson.IsObject(raw) {
			c.skip(at, malformed("turn is not an object"))
			continue
		}
		var asked, answered []byte
		var extra jsonObject
		for m := range rawjson.Members(raw) {
			switch m.Key {
			case "user":
				asked = m.Value
			case "bot":
				answered = m.Value
			default:
				extra.add(m)
			}
		}
		if asked == nil && answered == nil {
			c.skip(at, malformed("turn without text"))
		}
		for _, said := range []struct {
			role  string
			value []byte
		}{{"user", asked}, {"assistant", answered}} {
			if said.value == nil {
				continue
			}
			n := Node{Role: said.role, At: at, Metadata: extra.bytes()}
			n.Body, n.Type = textBody(said.value)
			c.Nodes = append(c.Nodes, n)
			extra = jsonObject{}
		}
	}
	c.keep(&more, item.At)
	return c, nil
}
