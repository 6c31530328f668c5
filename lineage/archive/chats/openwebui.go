package chats

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// OpenWebUI reads Open WebUI exports.
func OpenWebUI() archive.Format {
	return archive.Format{
		Name: "open-webui",
		Detect: func(h archive.Head) bool {
			o := h.Object()
			return rawjson.Has(rawjson.Get(o, "chat"), "history") || rawjson.Has(o, "chat", "user_id") || rawjson.Has(rawjson.Get(o, "history"), "messages", "currentId")
		},
		Large: true,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return readItems(ctx, in, func(item archive.Item, yield func(*archive.Conversation, error) bool) bool {
				return yield(openWebUIConversation(item))
			})
		},
	}
}

func openWebUIConversation(item archive.Item) (*archive.Conversation, error) {
	at := item.At
	c, history := openWebUIHeader(item.Raw)
	messages := rawjson.Get(history, "messages")
	if !rawjson.IsObject(messages) {
		at.Inside = "conversation " + c.SourceID
		return nil, archive.Damaged(at, archive.Malformed("conversation without a history of messages"))
	}
	t := archive.Tree{At: at, Of: item, Node: func(raw []byte) archive.Node {
		m := rawjson.MemberOf(raw)
		return openWebUIMessage(m.Key, m.Value, at)
	}}
	for m := range rawjson.Members(messages) {
		if !rawjson.IsObject(m.Value) {
			at := at
			at.Inside = "message " + m.Key
			c.Skip(at, archive.Malformed("message is not an object"))
			continue
		}
		t.Add(openWebUIMessage(m.Key, m.Value, at), m.In(messages), true)
	}
	c.Current = rawjson.Str(rawjson.Get(history, "currentId"))
	t.Fill(c)
	return c, nil
}

// openWebUIHeader reads a conversation without its messages, and returns the history that has them.
func openWebUIHeader(raw []byte) (c *archive.Conversation, history []byte) {
	c = &archive.Conversation{}
	var rest rawjson.Object
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "id":
			c.SourceID = rawjson.Str(m.Value)
		case "title":
			c.Title = rawjson.Str(m.Value)
		case "user_id":
			c.UserID = rawjson.Str(m.Value)
		case "created_at":
			c.Created = archive.ParseTime(m.Value)
		case "updated_at":
			c.Updated = archive.ParseTime(m.Value)
		case "chat":
			chat, inner := openWebUIChat(m.Value, c)
			if inner != nil {
				history = inner
			}
			if chat != nil {
				rest.Set("chat", chat)
			}
		case "history":
			history = m.Value
		case "messages":
		default:
			rest.Add(m)
		}
	}
	c.Metadata = rest.Bytes()
	return c, history
}

// openWebUIChat reads the chat inside a conversation. It returns the history, and the members that nothing else reads.
func openWebUIChat(raw []byte, c *archive.Conversation) (rest, history []byte) {
	var more rawjson.Object
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "history":
			history = m.Value
		case "messages": // a copy of the current branch
		case "title":
			if title := rawjson.Str(m.Value); c.Title == "" {
				c.Title = title
			} else if title != c.Title {
				more.Add(m)
			}
		case "models":
			for e := range rawjson.Elements(m.Value) {
				c.Model = rawjson.Str(e)
				break
			}
			more.Add(m)
		default:
			more.Add(m)
		}
	}
	return more.Bytes(), history
}

func openWebUIMessage(id string, raw []byte, at archive.Position) archive.Node {
	n := archive.Node{ID: id, At: at}
	n.Give(raw, "childrenIds")
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "parentId":
			n.Parent = rawjson.Str(m.Value)
		case "role":
			n.Role = rawjson.Str(m.Value)
		case "model":
			n.Model = rawjson.Str(m.Value)
		case "timestamp":
			n.Created = archive.ParseTime(m.Value)
		}
	}
	return n
}
