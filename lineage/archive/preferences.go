package archive

import (
	"bytes"
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// preferences reads pairs of dialogues with a preferred one: {chosen, rejected}, each a text with
// turns or a list of messages. They become two branches of a conversation; the common beginning is
// stored once.
func preferences() Format {
	return Format{
		Name: "preferences",
		Detect: func(h Head) bool {
			object := headObject(h)
			return has(object, "chosen", "rejected") || has(object, "chosen") && len(h.Bytes) >= HeadSize
		},
		Read: func(ctx context.Context, in *Input) iter.Seq2[*Conversation, error] {
			return eachItem(ctx, in, preferencePair)
		},
	}
}

func preferencePair(item Item) (*Conversation, error) {
	var chosen, rejected []byte
	var prompt []byte
	c := &Conversation{}
	var more fields
	for m := range rawjson.Members(item.Raw) {
		switch m.Key {
		case "chosen":
			chosen = m.Value
			continue
		case "rejected":
			rejected = m.Value
			continue
		case "prompt":
			prompt = m.Value
		}
		more.add(m)
	}
	if chosen == nil || rejected == nil {
		return nil, malformed("no pair of chosen and rejected")
	}
	for _, side := range []struct {
		branch string
		said   []byte
	}{{"main", chosen}, {"rejected", rejected}} {
		nodes, whole, err := dialogue(side.said, item.At)
		if err != nil {
			return nil, err
		}
		if !whole && prompt != nil {
			before, _, err := dialogue(prompt, item.At)
			if err == nil {
				if len(before) > 0 {
					before[len(before)-1].Role = "user"
				}
				nodes = append(before, nodes...)
			}
		}
		if len(nodes) == 0 {
			return nil, malformed("%s dialogue is empty", side.branch)
		}
		nodes[0].Root = true
		nodes[len(nodes)-1].Branch = side.branch
		c.Nodes = append(c.Nodes, nodes...)
	}
	c.keep(&more, item.At)
	return c, nil
}

var speakers = []struct{ mark, role string }{{"\n\nHuman:", "user"}, {"\n\nAssistant:", "assistant"}}

// dialogue reads one side of a pair. whole is set if it contains the question and not only an
// answer.
func dialogue(raw []byte, at Position) (nodes []Node, whole bool, err error) {
	if rawjson.IsArray(raw) {
		var c Conversation
		c.addChatMessages(raw, at)
		if len(c.Skipped) > 0 {
			return nil, false, c.Skipped[0].Err
		}
		for i := range c.Nodes {
			c.Nodes[i].ID = ""
		}
		return c.Nodes, len(c.Nodes) > 1, nil
	}
	said, mediaType := textBody(raw)
	if mediaType != typeText {
		return nil, false, malformed("dialogue is neither a text nor a list")
	}
	role := ""
	for {
		at, next := len(said), ""
		var mark string
		for _, s := range speakers {
			if i := bytes.Index(said, []byte(s.mark)); i >= 0 && i < at {
				at, next, mark = i, s.role, s.mark
			}
		}
		turn := said[:at]
		switch {
		case role != "":
			nodes = append(nodes, Node{Role: role, Body: bytes.TrimPrefix(turn, []byte(" "))})
			whole = whole || len(nodes) > 1
		case next == "" && len(turn) > 0:
			nodes = append(nodes, Node{Role: "assistant", Body: turn})
		case len(bytes.TrimSpace(turn)) > 0:
			nodes = append(nodes, Node{Role: "system", Body: turn})
		}
		if next == "" {
			break
		}
		said, role = said[at+len(mark):], next
	}
	for i := range nodes {
		nodes[i].At = at
	}
	return nodes, whole, nil
}
