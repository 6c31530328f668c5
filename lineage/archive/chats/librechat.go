package chats

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// LibreChat reads LibreChat exports, including recursive ones.
func LibreChat() archive.Format {
	return archive.Format{
		Name: "librechat",
		Detect: func(h archive.Head) bool {
			o := h.Object()
			return rawjson.Has(o, "conversationId", "exportAt") || rawjson.Has(o, "conversationId", "endpoint") || rawjson.Has(o, "conversationId", "messagesTree")
		},
		Large: true,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return readItems(ctx, in, func(item archive.Item, yield func(*archive.Conversation, error) bool) bool {
				return yield(libreChatConversation(item))
			})
		},
	}
}

func libreChatConversation(item archive.Item) (*archive.Conversation, error) {
	at := item.At
	c, messages := libreChatHeader(item.Raw)
	if messages == nil {
		at.Inside = "conversation " + c.SourceID
		return nil, archive.Damaged(at, archive.Malformed("conversation without messages"))
	}
	t := archive.Tree{At: at, Of: item, Node: func(raw []byte) archive.Node {
		n, _ := libreChatMessage(raw, at)
		return n
	}}
	oldest := addLibreChat(c, &t, messages)
	if c.Created.IsZero() {
		c.Created = oldest
	}
	c.Current = t.Newest()
	t.Fill(c)
	return c, nil
}

// libreChatHeader reads a conversation without its messages, and returns their list.
func libreChatHeader(raw []byte) (c *archive.Conversation, messages []byte) {
	c = &archive.Conversation{}
	var rest rawjson.Object
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "conversationId":
			c.SourceID = rawjson.Str(m.Value)
		case "title":
			c.Title = rawjson.Str(m.Value)
		case "createdAt":
			c.Created = archive.ParseTime(m.Value)
		case "updatedAt":
			c.Updated = archive.ParseTime(m.Value)
		case "exportAt", "branches", "recursive": // of the export
		case "options":
			c.Model = rawjson.Str(rawjson.Get(m.Value, "model"))
			rest.Add(m)
		case "messages", "messagesTree":
			if rawjson.IsArray(m.Value) {
				messages = m.Value
			}
		default:
			rest.Add(m)
		}
	}
	c.Metadata = rest.Bytes()
	return c, messages
}

// addLibreChat adds the messages of a conversation, and returns the time of the oldest one.
func addLibreChat(c *archive.Conversation, t *archive.Tree, messages []byte) (oldest time.Time) {
	// list is a list of messages with a common parent. The replies of a message are queued as another list.
	type list struct {
		raw    []byte
		parent string
	}
	open := []list{{raw: messages}}
	for len(open) > 0 {
		siblings := open[0]
		open = open[1:]
		before := ""
		for raw := range rawjson.Elements(siblings.raw) {
			if !rawjson.IsObject(raw) {
				c.Skip(t.At, archive.Malformed("message is not an object"))
				continue
			}
			n, children := libreChatMessage(raw, t.At)
			linked := false
			switch {
			case siblings.parent != "":
				n.Parent = siblings.parent
			case n.Parent == "" && before != "" && children == nil:
				n.Parent = before // a list without parents
			case n.Parent == zeroUUID:
				n.Parent = ""
			default:
				linked = true
			}
			before = n.ID
			if !n.Created.IsZero() && (oldest.IsZero() || n.Created.Before(oldest)) {
				oldest = n.Created
			}
			t.Add(n, raw, linked)
			if rawjson.IsArray(children) && n.ID != "" {
				open = append(open, list{children, n.ID})
			} else if rawjson.First(children) != nil {
				c.Skip(t.At, archive.Malformed("replies to a message without an id"))
			}
		}
	}
	return oldest
}

const zeroUUID = "00000000-0000-0000-0000-000000000000"

func libreChatMessage(raw []byte, at archive.Position) (n archive.Node, children []byte) {
	n.At = at
	n.Role = "assistant"
	n.Give(raw, "children")
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "messageId":
			n.ID = rawjson.Str(m.Value)
		case "parentMessageId":
			n.Parent = rawjson.Str(m.Value)
		case "children":
			children = m.Value
		case "isCreatedByUser":
			if rawjson.IsTrue(m.Value) {
				n.Role = "user"
			}
		case "model":
			n.Model = rawjson.Str(m.Value)
		case "createdAt":
			n.Created = archive.ParseTime(m.Value)
		}
	}
	return n, children
}
