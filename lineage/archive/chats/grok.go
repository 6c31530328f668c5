package chats

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/message"
)

// Grok reads Grok exports: prod-grok-backend.json, or one of its conversations.
func Grok() archive.Format {
	return archive.Format{
		Name: "grok",
		Detect: func(h archive.Head) bool {
			o := h.Object()
			return rawjson.Has(o, "conversation", "responses") || rawjson.Has(rawjson.First(rawjson.Get(o, "conversations")), "conversation")
		},
		Large: true,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return readItems(ctx, in, func(item archive.Item, yield func(*archive.Conversation, error) bool) bool {
				all := rawjson.Get(item.Raw, "conversations")
				if all == nil {
					return yield(grokConversation(item))
				}
				for raw := range rawjson.Elements(all) {
					if !yield(grokConversation(item.Within(raw))) {
						return false
					}
				}
				return true
			})
		},
	}
}

func grokConversation(item archive.Item) (*archive.Conversation, error) {
	raw, at := item.Raw, item.At
	c := &archive.Conversation{}
	var rest rawjson.Object
	for m := range rawjson.Members(rawjson.Last(raw, "conversation")) {
		switch m.Key {
		case "id":
			c.SourceID = rawjson.Str(m.Value)
		case "title":
			c.Title = rawjson.Str(m.Value)
		case "user_id":
			c.UserID = rawjson.Str(m.Value)
		case "leaf_response_id":
			c.Current = rawjson.Str(m.Value)
		case "create_time":
			c.Created = grokTime(m.Value)
		case "modify_time":
			c.Updated = grokTime(m.Value)
		default:
			rest.Add(m)
		}
	}
	at.Inside = "conversation " + c.SourceID
	responses := rawjson.Last(raw, "responses")
	if !rawjson.IsArray(responses) {
		return nil, archive.Damaged(at, archive.Malformed("conversation without responses"))
	}
	t := archive.Tree{At: at, Of: item, Node: func(raw []byte) archive.Node {
		n, _ := grokMessage(raw, at)
		return n
	}}
	before, current := "", false
	for raw := range rawjson.Elements(responses) {
		n, linked := grokMessage(raw, at)
		if n.Body == nil {
			c.Skip(at, archive.Malformed("response is not an object"))
			continue
		}
		if !linked {
			n.Parent = before
		}
		before, current = n.ID, current || n.ID == c.Current
		t.Add(n, raw, linked)
	}
	if !current {
		c.Current = t.Newest()
	}
	t.Fill(c)
	c.Metadata = rest.Bytes()
	return c, nil
}

// grokMessage reads an element of responses. linked reports whether it names its parent. Its body is nil if it has no
// message.
func grokMessage(raw []byte, at archive.Position) (n archive.Node, linked bool) {
	n = archive.Node{At: at, Role: "assistant"}
	inner := rawjson.Last(raw, "response")
	if !rawjson.IsObject(inner) {
		return n, false
	}
	n.Give(inner)
	var rest rawjson.Object
	for m := range rawjson.Members(raw) {
		if m.Key != "response" && !rawjson.IsNull(m.Value) {
			rest.Add(m)
		}
	}
	n.Metadata = rest.Bytes()
	for m := range rawjson.Members(inner) {
		switch m.Key {
		case "_id":
			n.ID = rawjson.Str(m.Value)
		case "parent_response_id":
			n.Parent = rawjson.Str(m.Value)
			linked = n.Parent != ""
		case "sender":
			n.Role = message.GrokRole(rawjson.Str(m.Value))
		case "create_time":
			n.Created = grokTime(m.Value)
		case "model":
			n.Model = rawjson.Str(m.Value)
		}
	}
	if n.Role == "user" {
		n.Model = "" // the one that was asked
	}
	return n, linked
}

// grokTime returns a time, which may be in the JSON of MongoDB: {"$date":{"$numberLong":"1738403998000"}}.
func grokTime(raw []byte) time.Time {
	if date := rawjson.Get(raw, "$date"); date != nil {
		raw = date
	}
	if n := rawjson.Get(raw, "$numberLong"); n != nil {
		raw = n
	}
	return archive.ParseTime(raw)
}
