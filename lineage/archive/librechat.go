package archive

import (
	"context"
	"iter"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// libreChat reads LibreChat exports, including recursive ones.
func libreChat() Format {
	return Format{
		Name: "librechat",
		Detect: func(h Head) bool {
			o := h.object()
			return has(o, "conversationId", "exportAt") || has(o, "conversationId", "endpoint") || has(o, "conversationId", "messagesTree")
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return readItems(ctx, in, func(item Item, yield func(*Conversation, error) bool) bool {
				return yield(libreChatConversation(item.Raw, item.At))
			})
		},
	}
}

func libreChatConversation(raw []byte, at Position) (*Conversation, error) {
	c := &Conversation{}
	var rest jsonObject
	var messages []byte
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "conversationId":
			c.SourceID = rawjson.Str(m.Value)
		case "title":
			c.Title = rawjson.Str(m.Value)
		case "createdAt":
			c.Created = parseTime(m.Value)
		case "updatedAt":
			c.Updated = parseTime(m.Value)
		case "exportAt", "branches", "recursive": // of the export
		case "options":
			c.Model = rawjson.Str(rawjson.Get(m.Value, "model"))
			rest.add(m)
		case "messages", "messagesTree":
			if rawjson.IsArray(m.Value) {
				messages = m.Value
			}
		default:
			rest.add(m)
		}
	}
	if messages == nil {
		at.Inside = "conversation " + c.SourceID
		return nil, damaged(at, malformed("conversation without messages"))
	}
	t := tree{at: at}
	// Children of a message are read after it, from this list.
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
				c.skip(at, malformed("message is not an object"))
				continue
			}
			n, children := libreChatMessage(raw, at)
			switch {
			case siblings.parent != "":
				n.Parent = siblings.parent
			case n.Parent == "" && before != "" && children == nil:
				n.Parent = before // a list without parents
			case n.Parent == zeroUUID:
				n.Parent = ""
			}
			before = n.ID
			t.add(n)
			if rawjson.IsArray(children) && n.ID != "" {
				open = append(open, list{children, n.ID})
			} else if firstElement(children) != nil {
				c.skip(at, malformed("replies to a message without an id"))
			}
		}
	}
	if c.Created.IsZero() {
		c.Created = t.oldestTime()
	}
	c.Nodes = t.ordered(t.newest())
	c.Current = t.newest()
	c.Metadata = rest.bytes()
	c.Repairs, c.repairedMore = t.repairs, t.repairedMore
	return c, nil
}

const zeroUUID = "00000000-0000-0000-0000-000000000000"

// newest returns the id of the newest message; of several with equal times, the last.
func (t *tree) newest() string {
	at := -1
	for i := range t.nodes {
		if at < 0 || !t.nodes[i].Created.Before(t.nodes[at].Created) {
			at = i
		}
	}
	if at < 0 {
		return ""
	}
	return t.nodes[at].ID
}

// oldestTime returns the earliest time of a message, zero if none has a time.
func (t *tree) oldestTime() (oldest time.Time) {
	for i := range t.nodes {
		if at := t.nodes[i].Created; !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}

func libreChatMessage(raw []byte, at Position) (n Node, children []byte) {
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
			n.Created = parseTime(m.Value)
		}
	}
	return n, children
}
