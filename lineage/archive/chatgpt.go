package archive

import (
	"bytes"
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// chatGPT reads ChatGPT exports: conversations.json, whole or in parts.
func chatGPT() Format {
	return Format{
		Name: "chatgpt",
		Detect: func(h Head) bool {
			object := h.object()
			if has(object, "mapping") {
				return true
			}
			for m := range rawjson.Members(object) {
				return has(m.Value, "mapping")
			}
			return false
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return readItems(ctx, in, func(item Item, yield func(*Conversation, error) bool) bool {
				if rawjson.IsObject(rawjson.Get(item.Raw, "mapping")) {
					return yield(chatGPTConversation(item.Raw, item.At))
				}
				// An object with conversations by name.
				named := false
				var others []*Damage
				for m := range rawjson.Members(item.Raw) {
					at := item.At
					at.Inside = m.Key
					if !rawjson.IsObject(rawjson.Get(m.Value, "mapping")) {
						others = append(others, damaged(at, malformed("conversation without a mapping")))
						continue
					}
					named = true
					if !yield(chatGPTConversation(m.Value, at)) {
						return false
					}
				}
				if !named {
					return yield(nil, damaged(item.At, malformed("conversation without a mapping")))
				}
				for _, d := range others {
					if !yield(nil, d) {
						return false
					}
				}
				return true
			})
		},
	}
}

// readItems yields the conversations that read returns for each item of an input.
func readItems(ctx context.Context, in *Input, read func(Item, func(*Conversation, error) bool) bool) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		for item, err := range in.Items(ctx) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !rawjson.IsObject(item.Raw) {
				if !yield(nil, damaged(item.At, malformed("not an object"))) {
					return
				}
				continue
			}
			if !read(item, yield) {
				return
			}
		}
	}
}

func chatGPTConversation(raw []byte, at Position) (*Conversation, error) {
	c := &Conversation{}
	t := tree{at: at}
	var rest jsonObject
	var mapping []byte
	var id string
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "mapping":
			mapping = m.Value
		case "title":
			c.Title = rawjson.Str(m.Value)
		case "conversation_id":
			c.SourceID = rawjson.Str(m.Value)
		case "id":
			id = rawjson.Str(m.Value)
		case "create_time":
			c.Created = parseTime(m.Value)
		case "update_time":
			c.Updated = parseTime(m.Value)
		case "current_node":
			c.Current = rawjson.Str(m.Value)
		case "default_model_slug":
			c.Model = rawjson.Str(m.Value)
		default:
			rest.add(m)
		}
	}
	switch {
	case c.SourceID == "":
		c.SourceID = id
	case id != "" && id != c.SourceID:
		rest.setText("id", id)
	}
	t.nodes = make([]Node, 0, min(bytes.Count(mapping, roleKey), 1<<12)) // an estimate
	for m := range rawjson.Members(mapping) {
		if bad := chatGPTEntry(&t, m, at); bad != nil {
			at := at
			at.Inside = "entry " + m.Key
			c.skip(at, bad)
		}
	}
	c.Current = t.resolve(c.Current)
	c.Nodes = t.ordered(c.Current)
	c.Metadata = rest.bytes()
	c.Repairs, c.repairedMore = t.repairs, t.repairedMore
	return c, nil
}

// chatGPTEntry adds an entry of the mapping to the tree. An entry whose message is null, such as
// the root, is not a message.
func chatGPTEntry(t *tree, entry rawjson.Member, at Position) error {
	if !rawjson.IsObject(entry.Value) {
		return malformed("it is not an object")
	}
	n := Node{ID: entry.Key, At: at}
	var message []byte
	var rest jsonObject
	for m := range rawjson.Members(entry.Value) {
		switch m.Key {
		case "id", "children":
		case "parent":
			n.Parent = rawjson.Str(m.Value)
		case "message":
			message = m.Value
		default:
			rest.add(m)
		}
	}
	if !rawjson.IsObject(message) {
		t.skip(n.ID, n.Parent)
		if !rawjson.IsNull(message) {
			return malformed("its message is not an object")
		}
		return nil
	}
	for m := range rawjson.Members(message) {
		switch m.Key {
		case "author":
			n.Role, n.Name = rawjson.Str(rawjson.Last(m.Value, "role")), rawjson.Str(rawjson.Last(m.Value, "name"))
		case "create_time":
			n.Created = parseTime(m.Value)
		case "metadata":
			n.Model = rawjson.Str(rawjson.Get(m.Value, "model_slug"))
		}
	}
	n.Give(message)
	n.Metadata = rest.bytes()
	t.add(n)
	return nil
}
