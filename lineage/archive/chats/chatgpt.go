package chats

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// ChatGPT reads ChatGPT exports: conversations.json, whole or in parts.
func ChatGPT() archive.Format {
	return archive.Format{
		Name: "chatgpt",
		Detect: func(h archive.Head) bool {
			object := h.Object()
			if rawjson.Has(object, "mapping") {
				return !isDeepSeek(object)
			}
			for m := range rawjson.Members(object) {
				return rawjson.Has(m.Value, "mapping")
			}
			return false
		},
		Large: true,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return readItems(ctx, in, func(item archive.Item, yield func(*archive.Conversation, error) bool) bool {
				if rawjson.IsObject(rawjson.Get(item.Raw, "mapping")) {
					return yield(chatGPTConversation(item))
				}
				return yieldNamed(item, yield)
			})
		},
	}
}

// yieldNamed yields the conversations of an object that has them by name, and then what is damaged in it. It reports whether to continue.
func yieldNamed(item archive.Item, yield func(*archive.Conversation, error) bool) bool {
	const noMapping = "conversation without a mapping"
	found := false
	var damages []*archive.Damage
	for m := range rawjson.Members(item.Raw) {
		at := item.At
		at.Inside = m.Key
		if !rawjson.IsObject(rawjson.Get(m.Value, "mapping")) {
			damages = append(damages, archive.Damaged(at, archive.Malformed(noMapping)))
			continue
		}
		found = true
		nested := item.Within(m.Value)
		nested.At = at
		if !yield(chatGPTConversation(nested)) {
			return false
		}
	}
	if !found {
		return yield(nil, archive.Damaged(item.At, archive.Malformed(noMapping)))
	}
	for _, d := range damages {
		if !yield(nil, d) {
			return false
		}
	}
	return true
}

func chatGPTConversation(item archive.Item) (*archive.Conversation, error) {
	raw := item.Raw
	c := &archive.Conversation{}
	t := mappingTree(item, chatGPTEntry)
	var rest rawjson.Object
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
			c.Created = archive.ParseTime(m.Value)
		case "update_time":
			c.Updated = archive.ParseTime(m.Value)
		case "current_node":
			c.Current = rawjson.Str(m.Value)
		case "default_model_slug":
			c.Model = rawjson.Str(m.Value)
		default:
			rest.Add(m)
		}
	}
	switch {
	case c.SourceID == "":
		c.SourceID = id
	case id != "" && id != c.SourceID:
		rest.SetText("id", id)
	}
	addMapping(c, &t, mapping, chatGPTEntry)
	c.Current = t.Resolve(c.Current)
	t.Fill(c)
	c.Metadata = rest.Bytes()
	return c, nil
}

// chatGPTEntry reads an entry of the mapping. An entry with a null message, such as the root, says nothing.
func chatGPTEntry(id string, raw []byte, at archive.Position) (n archive.Node, hasMessage bool, bad error) {
	n, message, bad := mappingEntry(id, raw, at)
	if message == nil {
		return n, false, bad
	}
	for m := range rawjson.Members(message) {
		switch m.Key {
		case "author":
			n.Role, n.Name = rawjson.Str(rawjson.Last(m.Value, "role")), rawjson.Str(rawjson.Last(m.Value, "name"))
		case "create_time":
			n.Created = archive.ParseTime(m.Value)
		case "metadata":
			n.Model = rawjson.Str(rawjson.Get(m.Value, "model_slug"))
		}
	}
	return n, true, nil
}
