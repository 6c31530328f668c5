package lists

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Turns reads dialogues of questions and answers: {"history": [{"user", "bot"}]}.
func Turns() archive.Format {
	return archive.Format{
		Name: "turns",
		Detect: func(h archive.Head) bool {
			first := rawjson.First(rawjson.Get(h.Object(), "history"))
			return rawjson.Has(first, "user") || rawjson.Has(first, "bot")
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return archive.EachItem(ctx, in, turnsConversation)
		},
	}
}

func turnsConversation(item archive.Item) (*archive.Conversation, error) {
	c := &archive.Conversation{}
	var history []byte
	var task, id string
	var more archive.Fields
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
		more.Add(m)
	}
	if history == nil {
		return nil, archive.Malformed("no history")
	}
	c.Title = titled(task, id)
	i := 0
	for raw := range rawjson.Elements(history) {
		i++
		addTurn(c, raw, item.At.Element("turn", i))
	}
	c.Keep(&more, item)
	return c, nil
}

// addTurn adds the messages of a turn. What else it has is metadata of the first one.
func addTurn(c *archive.Conversation, raw []byte, at archive.Position) {
	if !rawjson.IsObject(raw) {
		c.Skip(at, archive.Malformed("turn is not an object"))
		return
	}
	var prompt, answer []byte
	var more rawjson.Object
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "user":
			prompt = m.Value
		case "bot":
			answer = m.Value
		default:
			more.Add(m)
		}
	}
	if prompt == nil && answer == nil {
		c.Skip(at, archive.Malformed("turn without text"))
	}
	add := func(role string, value []byte) {
		if value == nil {
			return
		}
		n := archive.Node{Role: role, At: at, Metadata: more.Bytes()}
		n.Body, n.Type = archive.TextBody(value)
		c.Nodes = append(c.Nodes, n)
		more = rawjson.Object{}
	}
	add("user", prompt)
	add("assistant", answer)
}
