package lists

import (
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// MessageLists reads lists of chat messages: the files of chat endpoints and fine-tuning ({"messages":
// […]} per line), and agent runs, which have the list under another name together with results. A
// file that is a single list of messages is a conversation.
func MessageLists() archive.Format {
	return archive.Format{Name: "openai", Detect: detectChatLists, Read: readChatLists, Large: true}
}

// listNames are the usual names of message lists, best first. In a file with none of these names, the first list of
// messages is used.
var listNames = []string{"messages", "traj", "history", "conversation", "conversations", "chat", "dialog", "dialogue", "trajectory"}

// foreignKeys are keys of other formats that also have lists of messages.
var foreignKeys = []string{"conversationId", "mapping", "chat_messages", "parentId", "sessionId", "chosen", "rejected"}

func detectChatLists(h archive.Head) bool {
	first := h.Object()
	if first == nil {
		return false
	}
	if isChatMessage(first) {
		for m := range rawjson.Members(first) {
			if slices.Contains(foreignKeys, m.Key) {
				return false
			}
		}
		return true
	}
	found := false
	for m := range rawjson.Members(first) {
		if slices.Contains(foreignKeys, m.Key) {
			return false
		}
		found = found || beginsChatMessages(m.Value) || m.Key == "trajectory" && beginsSteps(m.Value)
	}
	return found
}

// beginsChatMessages reports whether a value, possibly truncated, is a list of messages.
func beginsChatMessages(list []byte) bool {
	first := rawjson.First(list)
	if isChatMessage(first) {
		return true
	}
	// A long message may be truncated.
	for m := range rawjson.Members(first) {
		return m.Key == "role" || m.Key == "content"
	}
	return false
}

// beginsSteps reports whether a value, possibly truncated, is a list of an agent's steps; the
// messages are in another list, possibly much later.
func beginsSteps(list []byte) bool {
	return rawjson.Has(rawjson.First(list), "action", "observation")
}

// chatList returns the list of messages in an object, and its name.
func chatList(raw []byte) (list []byte, name string) {
	best := len(listNames)
	for m := range rawjson.Members(raw) {
		if !isChatMessage(rawjson.First(m.Value)) {
			continue
		}
		rank := slices.Index(listNames, m.Key)
		switch {
		case rank >= 0 && rank < best:
			best, list, name = rank, m.Value, m.Key
		case list == nil:
			list, name = m.Value, m.Key
		}
	}
	return list, name
}

func readChatLists(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
	return func(yield func(*archive.Conversation, error) bool) {
		r := chatListReader{loose: in.NewList(), most: in.MaxItem()}
		defer r.loose.Close()
		for item, err := range in.Values(ctx) {
			var c *archive.Conversation
			if err == nil {
				c, err = r.read(item)
			}
			if (c != nil || err != nil) && !yield(c, err) {
				return
			}
		}
		if r.loose.Size() > 0 {
			yield(r.looseConversation())
		}
	}
}

// chatListReader reads items that are lists of messages. If items are messages, the file is one list.
type chatListReader struct {
	loose *archive.List // of items that are messages
	most  int64         // size of loose
	full  bool          // a message was left out of it
}

// read reads an item as a conversation. It returns none for a message.
func (r *chatListReader) read(item archive.Item) (*archive.Conversation, error) {
	if isChatMessage(item.Raw) {
		return nil, r.addLoose(item)
	}
	if rawjson.IsArray(item.Raw) && isChatMessage(rawjson.First(item.Raw)) {
		c := &archive.Conversation{}
		addChatMessages(c, item.Raw, item)
		return c, nil
	}
	if c := chatListConversation(item); c != nil {
		return c, nil
	}
	return nil, archive.Damaged(item.At, archive.Malformed("no list of messages"))
}

// addLoose adds a message to the list of the file. Of those that are too many, the first one is an error.
func (r *chatListReader) addLoose(item archive.Item) error {
	if _, err := chatNode(item.Raw, item.At); err != nil {
		return archive.Damaged(item.At, err)
	}
	if r.full {
		return nil
	}
	size := r.loose.Size() + int64(len(item.Raw)) + 2
	if size > r.most {
		r.full = true
		return archive.Damaged(item.At, archive.TooLarge("list of messages", size, r.most))
	}
	r.loose.Add(item.Raw)
	return nil
}

// looseConversation returns the conversation of the list of the file.
func (r *chatListReader) looseConversation() (*archive.Conversation, error) {
	item, err := r.loose.Item()
	if err != nil {
		return nil, err
	}
	c := &archive.Conversation{}
	addChatMessages(c, item.Raw, item)
	return c, nil
}

// chatListConversation reads an object with a list of messages; nil if it has none.
func chatListConversation(item archive.Item) *archive.Conversation {
	if !rawjson.IsObject(item.Raw) {
		return nil
	}
	list, name := chatList(item.Raw)
	c := &archive.Conversation{}
	var more archive.Fields
	var task, trial string
	for m := range rawjson.Members(item.Raw) {
		switch m.Key {
		case name:
			if list != nil {
				continue
			}
		case "messages":
			if list == nil && rawjson.IsArray(m.Value) && rawjson.First(m.Value) == nil {
				list = m.Value
				continue
			}
		case "title":
			if c.Title = rawjson.Str(m.Value); c.Title != "" {
				continue
			}
		case "model":
			if c.Model = rawjson.Str(m.Value); c.Model != "" {
				continue
			}
		case "task_id", "instance_id":
			task = scalar(m.Value)
		case "trial":
			trial = scalar(m.Value)
		}
		more.Add(m)
	}
	if list == nil {
		return nil
	}
	if c.Title == "" && task != "" {
		c.Title = "task " + task
		if trial != "" {
			c.Title += ", trial " + trial
		}
	}
	addChatMessages(c, list, item)
	c.Keep(&more, item)
	return c
}

// addChatMessages adds the messages of a list, and records elements that are not messages.
func addChatMessages(c *archive.Conversation, list []byte, item archive.Item) {
	addNodes(c, list, item, "message", chatNode)
}

// addNodes adds a node for each element of a list in the text of an item, and records elements that have none. Ids that an earlier element has
// are left out, because ids must be unique in a conversation. The nodes after the first part are not kept, but made again when they are read.
func addNodes(c *archive.Conversation, list []byte, item archive.Item, what string, node func(raw []byte, at archive.Position) (archive.Node, error)) {
	rest := 0 // the element with which the nodes that are not kept begin, 0 if all are kept
	size := int64(0)
	seen, repeated := make(idSet), make(map[int]bool)
	for i, raw := range item.Elements(list) {
		at := item.At.Element(what, i)
		n, err := node(raw, at)
		if err != nil {
			c.Skip(at, err)
			continue
		}
		if seen.add(&n) {
			repeated[i] = true
		}
		switch {
		case rest > 0:
		case c.Rest != nil || len(c.Nodes) >= archive.PartNodes || size >= archive.PartBytes:
			rest = i
		default:
			c.Nodes = append(c.Nodes, n)
			size += archive.NodesSize(c.Nodes[len(c.Nodes)-1:])
		}
	}
	if rest == 0 {
		return
	}
	c.AddRest(item.Memory(list), func(yield func(archive.Node) bool) {
		for i, raw := range item.Elements(list) {
			if i < rest {
				continue
			}
			n, err := node(raw, item.At.Element(what, i))
			if err != nil {
				continue
			}
			if repeated[i] {
				n.ID = ""
			}
			if !yield(n) {
				return
			}
		}
	})
}
