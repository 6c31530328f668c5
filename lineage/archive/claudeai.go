package archive

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// claudeAI reads Claude.ai exports: conversations.json, or a single conversation.
func claudeAI() Format {
	return Format{
		Name: "claude",
		Detect: func(h Head) bool {
			o := h.object()
			return has(o, "chat_messages") || has(o, "uuid", "account", "name")
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return readItems(ctx, in, func(item Item, yield func(*Conversation, error) bool) bool {
				return yield(claudeConversation(item.Raw, item.At))
			})
		},
	}
}

func claudeConversation(raw []byte, at Position) (*Conversation, error) {
	c := &Conversation{}
	t := tree{at: at}
	var rest jsonObject
	var messages []byte
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "uuid":
			c.SourceID = rawjson.Str(m.Value)
		case "name":
			c.Title = rawjson.Str(m.Value)
		case "created_at":
			c.Created = parseTime(m.Value)
		case "updated_at":
			c.Updated = parseTime(m.Value)
		case "model":
			c.Model = rawjson.Str(m.Value)
		case "account":
			c.UserID = rawjson.Str(rawjson.Get(m.Value, "uuid"))
			rest.add(m)
		case "current_leaf_message_uuid":
			c.Current = rawjson.Str(m.Value)
		case "chat_messages":
			messages = m.Value
		default:
			rest.add(m)
		}
	}
	if !rawjson.IsArray(messages) {
		at.Inside = "conversation " + c.SourceID
		return nil, damaged(at, malformed("conversation without chat_messages"))
	}
	before := ""
	for message := range rawjson.Elements(messages) {
		if !rawjson.IsObject(message) {
			c.skip(at, malformed("message is not an object"))
			continue
		}
		n, linked := claudeMessage(message, at)
		if n.Role == "" {
			t.repair("message "+n.ID, malformed("message without a sender"))
		}
		if !linked {
			n.Parent = before
		}
		before = n.ID
		t.add(n)
	}
	if c.Current != "" {
		c.Current = t.known(c.Current)
	}
	c.Nodes = t.ordered(c.Current)
	c.Metadata = rest.bytes()
	c.Repairs, c.repairedMore = t.repairs, t.repairedMore
	return c, nil
}

// known returns an id if a message has it, else "".
func (t *tree) known(id string) string {
	for i := range t.nodes {
		if t.nodes[i].ID == id {
			return id
		}
	}
	return ""
}

// noParent is the parent id of the first message of a conversation.
const noParent = "00000000-0000-4000-8000-000000000000"

// claudeMessage reads a message. linked reports whether it names its parent.
func claudeMessage(raw []byte, at Position) (n Node, linked bool) {
	n.At = at
	n.Give(raw)
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "uuid":
			n.ID = rawjson.Str(m.Value)
		case "sender":
			if n.Role = rawjson.Str(m.Value); n.Role == "human" {
				n.Role = "user"
			}
		case "created_at":
			n.Created = parseTime(m.Value)
		case "model":
			n.Model = rawjson.Str(m.Value)
		case "parent_message_uuid":
			linked = true
			if n.Parent = rawjson.Str(m.Value); n.Parent == noParent {
				n.Parent = ""
			}
		case "attachments":
			for a := range rawjson.Elements(m.Value) {
				n.attach(rawjson.Str(rawjson.Get(a, "file_name")), rawjson.Get(a, "extracted_content"))
			}
		}
	}
	return n, linked
}

// attach adds a file whose text is included.
func (n *Node) attach(name string, text []byte) {
	if rawjson.IsString(text) {
		body, mediaType := textBody(text)
		n.Attachments = append(n.Attachments, Attachment{Filename: name, Type: mediaType, Body: body})
	}
}
