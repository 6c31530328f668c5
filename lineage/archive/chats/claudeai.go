package chats

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// ClaudeAI reads Claude.ai exports: conversations.json, or a single conversation.
func ClaudeAI() archive.Format {
	return archive.Format{
		Name: "claude",
		Detect: func(h archive.Head) bool {
			o := h.Object()
			return rawjson.Has(o, "chat_messages") || rawjson.Has(o, "uuid", "account", "name")
		},
		Large: true,
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return readItems(ctx, in, func(item archive.Item, yield func(*archive.Conversation, error) bool) bool {
				return yield(claudeConversation(item))
			})
		},
	}
}

func claudeConversation(item archive.Item) (*archive.Conversation, error) {
	raw, at := item.Raw, item.At
	c := &archive.Conversation{}
	t := archive.Tree{At: at, Of: item, Node: func(raw []byte) archive.Node {
		n, _ := claudeMessage(raw, at)
		return n
	}}
	var rest rawjson.Object
	var messages []byte
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "uuid":
			c.SourceID = rawjson.Str(m.Value)
		case "name":
			c.Title = rawjson.Str(m.Value)
		case "created_at":
			c.Created = archive.ParseTime(m.Value)
		case "updated_at":
			c.Updated = archive.ParseTime(m.Value)
		case "model":
			c.Model = rawjson.Str(m.Value)
		case "account":
			c.UserID = rawjson.Str(rawjson.Get(m.Value, "uuid"))
			rest.Add(m)
		case "current_leaf_message_uuid":
			c.Current = rawjson.Str(m.Value)
		case "chat_messages":
			messages = m.Value
		default:
			rest.Add(m)
		}
	}
	if !rawjson.IsArray(messages) {
		at.Inside = "conversation " + c.SourceID
		return nil, archive.Damaged(at, archive.Malformed("conversation without chat_messages"))
	}
	before, current := "", false
	for message := range rawjson.Elements(messages) {
		if !rawjson.IsObject(message) {
			c.Skip(at, archive.Malformed("message is not an object"))
			continue
		}
		n, linked := claudeMessage(message, at)
		if n.Role == "" {
			t.Repair("message "+n.ID, archive.Malformed("message without a sender"))
		}
		if !linked {
			n.Parent = before
		}
		before, current = n.ID, current || n.ID == c.Current
		t.Add(n, message, linked)
	}
	if !current {
		c.Current = ""
	}
	t.Fill(c)
	c.Metadata = rest.Bytes()
	return c, nil
}

// noParent is the parent id of the first message of a conversation.
const noParent = "00000000-0000-4000-8000-000000000000"

// claudeMessage reads a message. linked reports whether it names its parent.
func claudeMessage(raw []byte, at archive.Position) (n archive.Node, linked bool) {
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
			n.Created = archive.ParseTime(m.Value)
		case "model":
			n.Model = rawjson.Str(m.Value)
		case "parent_message_uuid":
			linked = true
			if n.Parent = rawjson.Str(m.Value); n.Parent == noParent {
				n.Parent = ""
			}
		case "attachments":
			for a := range rawjson.Elements(m.Value) {
				attach(&n, rawjson.Str(rawjson.Get(a, "file_name")), rawjson.Get(a, "extracted_content"))
			}
		}
	}
	return n, linked
}

// attach adds a file whose text is included.
func attach(n *archive.Node, name string, text []byte) {
	if rawjson.IsString(text) {
		body, mediaType := archive.TextBody(text)
		n.Attachments = append(n.Attachments, archive.Attachment{Filename: name, Type: mediaType, Body: body})
	}
}
