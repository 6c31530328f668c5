package archive

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// openWebUI reads Open WebUI exports.
func openWebUI() Format {
	return Format{
		Name: "open-webui",
		Detect: func(h Head) bool {
			o := h.object()
			return has(rawjson.Get(o, "chat"), "history") || has(o, "chat", "user_id") || has(rawjson.Get(o, "history"), "messages", "currentId")
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return readItems(ctx, in, func(item Item, yield func(*Conversation, error) bool) bool {
				return yield(openWebUIConversation(item.Raw, item.At))
			})
		},
	}
}

func openWebUIConversation(raw []byte, at Position) (*Conversation, error) {
	c := &Conversation{}
	t := tree{at: at}
	var rest jsonObject
	var history []byte
	chat := func(raw []byte) {
		var more jsonObject
		for m := range rawjson.Members(raw) {
			switch m.Key {
			case "history":
				history = m.Value
			case "messages": // a copy of the current branch
			case "title":
				if title := rawjson.Str(m.Value); c.Title == "" {
					c.Title = title
				} else if title != c.Title {
					more.add(m)
				}
			case "models":
				for e := range rawjson.Elements(m.Value) {
					c.Model = rawjson.Str(e)
					break
				}
				more.add(m)
			default:
				more.add(m)
			}
		}
		if b := more.bytes(); b != nil {
			rest.set("chat", b)
		}
	}
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "id":
			c.SourceID = rawjson.Str(m.Value)
		case "title":
			c.Title = rawjson.Str(m.Value)
		case "user_id":
			c.UserID = rawjson.Str(m.Value)
		case "created_at":
			c.Created = parseTime(m.Value)
		case "updated_at":
			c.Updated = parseTime(m.Value)
		case "chat":
			chat(m.Value)
		case "history":
			history = m.Value
		case "messages":
		default:
			rest.add(m)
		}
	}
	messages := rawjson.Get(history, "messages")
	if !rawjson.IsObject(messages) {
		at.Inside = "conversation " + c.SourceID
		return nil, damaged(at, malformed("conversation without a history of messages"))
	}
	for m := range rawjson.Members(messages) {
		if !rawjson.IsObject(m.Value) {
			at := at
			at.Inside = "message " + m.Key
			c.skip(at, malformed("message is not an object"))
			continue
		}
		t.add(openWebUIMessage(m, at))
	}
	c.Current = rawjson.Str(rawjson.Get(history, "currentId"))
	c.Nodes = t.ordered(c.Current)
	c.Metadata = rest.bytes()
	c.Repairs, c.repairedMore = t.repairs, t.repairedMore
	return c, nil
}

func openWebUIMessage(entry rawjson.Member, at Position) Node {
	n := Node{ID: entry.Key, At: at}
	n.Give(entry.Value, "childrenIds")
	for m := range rawjson.Members(entry.Value) {
		switch m.Key {
		case "parentId":
			n.Parent = rawjson.Str(m.Value)
		case "role":
			n.Role = rawjson.Str(m.Value)
		case "model":
			n.Model = rawjson.Str(m.Value)
		case "timestamp":
			n.Created = parseTime(m.Value)
		}
	}
	return n
}
