package archive

import (
	"bytes"
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
)

// claudeAI reads the export of Claude.ai: conversations.json, or one of them.
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

// known returns an id if a message has it.
func (t *tree) known(id string) string {
	for i := range t.nodes {
		if t.nodes[i].ID == id {
			return id
		}
	}
	return ""
}

// noParent is what the first message of a conversation names as its parent.
const noParent = "00000000-0000-4000-8000-000000000000"

// claudeMessage reads a message. linked says that it names its parent.
func claudeMessage(raw []byte, at Position) (n Node, linked bool) {
	n.At = at
	var rest jsonObject
	var said, contents []byte
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "uuid":
			n.ID = rawjson.Str(m.Value)
		case "sender":
			switch n.Role = rawjson.Str(m.Value); n.Role {
			case "human":
				n.Role = "user"
			}
		case "text":
			said = m.Value
		case "content":
			contents = m.Value
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
			if listed := claudeAttachments(&n, m.Value); listed != nil {
				rest.addRaw(m.Quoted, listed)
			}
		default:
			if !rawjson.IsNull(m.Value) && string(m.Value) != "[]" {
				rest.add(m)
			}
		}
	}
	var block []byte
	blocks := 0
	var spoken []byte // the text of all blocks
	for b := range rawjson.Elements(contents) {
		block = b
		blocks++
		if words := rawjson.Get(b, "text"); rawjson.IsString(words) {
			w, _ := rawjson.Unquote(words)
			spoken = append(spoken, w...)
		}
	}
	switch {
	case blocks == 0:
		if n.Body, n.Type = textBody(said); rawjson.IsNull(said) {
			n.Body, n.Type = nil, typeText
		}
		said = nil
	case blocks == 1 && string(rawjson.Get(block, "type")) == `"text"` && rawjson.IsString(rawjson.Get(block, "text")):
		n.Body, n.Type = textBody(rawjson.Get(block, "text"))
		var more jsonObject
		for m := range rawjson.Members(block) {
			if m.Key != "type" && m.Key != "text" && !rawjson.IsNull(m.Value) && string(m.Value) != "[]" {
				more.add(m)
			}
		}
		if b := more.bytes(); b != nil {
			rest.set("block", b)
		}
	default:
		n.Body, n.Type = contents, typeJSON
	}
	if rawjson.IsString(said) && len(said) > 2 {
		if w, _ := rawjson.Unquote(said); !bytes.Equal(w, spoken) {
			rest.set("text", said)
		}
	}
	n.Metadata = rest.bytes()
	return n, linked
}

// claudeAttachments takes the texts out of a list of attachments and returns what
// is left of it, nil for nothing.
func claudeAttachments(n *Node, raw []byte) []byte {
	var list []byte
	for a := range rawjson.Elements(raw) {
		if !rawjson.IsObject(a) {
			list = append(append(list, ','), a...)
			continue
		}
		var rest jsonObject
		file := Attachment{Type: content.TypeText}
		kept := false
		for m := range rawjson.Members(a) {
			switch {
			case m.Key == "file_name":
				file.Filename = rawjson.Str(m.Value)
				rest.add(m)
			case m.Key == "extracted_content" && rawjson.IsString(m.Value):
				kept = true
				if file.Body, file.Type = textBody(m.Value); file.Type != typeText {
					file.Type = typeJSON
				}
			default:
				rest.add(m)
			}
		}
		if kept {
			n.Attachments = append(n.Attachments, file)
		}
		if b := rest.bytes(); b != nil {
			list = append(append(list, ','), b...)
		}
	}
	if list == nil {
		return nil
	}
	list[0] = '['
	return append(list, ']')
}
