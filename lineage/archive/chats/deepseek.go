package chats

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/message"
)

// DeepSeek reads DeepSeek exports: conversations.json.
func DeepSeek() archive.Format {
	return archive.Format{
		Name:   "deepseek",
		Detect: func(h archive.Head) bool { return isDeepSeek(h.Object()) },
		Large:  true,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return readItems(ctx, in, func(item archive.Item, yield func(*archive.Conversation, error) bool) bool {
				return yield(deepSeekConversation(item))
			})
		},
	}
}

// isDeepSeek reports whether a conversation, possibly truncated, is one of DeepSeek. Those of ChatGPT have a mapping, too.
func isDeepSeek(raw []byte) bool { return rawjson.Has(raw, "inserted_at", "mapping") }

func deepSeekConversation(item archive.Item) (*archive.Conversation, error) {
	raw, at := item.Raw, item.At
	c := &archive.Conversation{}
	t := mappingTree(item, deepSeekEntry)
	var rest rawjson.Object
	var mapping []byte
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "id":
			c.SourceID = rawjson.Str(m.Value)
		case "title":
			c.Title = rawjson.Str(m.Value)
		case "inserted_at":
			c.Created = archive.ParseTime(m.Value)
		case "updated_at":
			c.Updated = archive.ParseTime(m.Value)
		case "mapping":
			mapping = m.Value
		default:
			rest.Add(m)
		}
	}
	if !rawjson.IsObject(mapping) {
		at.Inside = "conversation " + c.SourceID
		return nil, archive.Damaged(at, archive.Malformed("conversation without a mapping"))
	}
	addMapping(c, &t, mapping, deepSeekEntry)
	c.Current = t.Newest()
	t.Fill(c)
	c.Metadata = rest.Bytes()
	return c, nil
}

// deepSeekEntry reads an entry of the mapping. The root has no message.
func deepSeekEntry(id string, raw []byte, at archive.Position) (n archive.Node, hasMessage bool, bad error) {
	n, inner, bad := mappingEntry(id, raw, at)
	if inner == nil {
		return n, false, bad
	}
	n.Role = "assistant"
	for m := range rawjson.Members(inner) {
		switch m.Key {
		case "fragments":
			n.Role = message.DeepSeekRole(m.Value)
		case "inserted_at":
			n.Created = archive.ParseTime(m.Value)
		case "model":
			n.Model = rawjson.Str(m.Value)
		}
	}
	if n.Role == "user" {
		n.Model = "" // the one that was asked
	}
	return n, true, nil
}
