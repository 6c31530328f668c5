package lists

import (
	"bytes"
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// Preferences reads pairs of dialogues with a preferred one: {chosen, rejected}, each a text with
// turns or a list of messages. They become two branches of a conversation; the common beginning is
// stored once.
func Preferences() archive.Format {
	return archive.Format{
		Name: "preferences",
		Detect: func(h archive.Head) bool {
			object := h.Object()
			return rawjson.Has(object, "chosen", "rejected") || rawjson.Has(object, "chosen") && len(h.Bytes) >= archive.HeadSize
		},
		Read: func(ctx context.Context, in *archive.Input) iter.Seq2[*archive.Conversation, error] {
			return archive.EachItem(ctx, in, preferencePair)
		},
	}
}

func preferencePair(item archive.Item) (*archive.Conversation, error) {
	var chosen, rejected []byte
	var prompt []byte
	c := &archive.Conversation{}
	var more archive.Fields
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
		more.Add(m)
	}
	if chosen == nil || rejected == nil {
		return nil, archive.Malformed("no pair of chosen and rejected")
	}
	for _, side := range []struct {
		branch string
		raw    []byte
	}{{"main", chosen}, {"rejected", rejected}} {
		nodes, whole, err := dialogue(side.raw, item)
		if err != nil {
			return nil, err
		}
		if !whole && prompt != nil {
			before, _, err := dialogue(prompt, item)
			if err == nil {
				if len(before) > 0 {
					before[len(before)-1].Role = "user"
				}
				nodes = append(before, nodes...)
			}
		}
		if len(nodes) == 0 {
			return nil, archive.Malformed("%s dialogue is empty", side.branch)
		}
		nodes[0].Root = true
		nodes[len(nodes)-1].Branch = side.branch
		c.Nodes = append(c.Nodes, nodes...)
	}
	c.Keep(&more, item)
	return c, nil
}

var speakers = []struct{ mark, role string }{{"\n\nHuman:", "user"}, {"\n\nAssistant:", "assistant"}}

// dialogue reads one side of a pair. whole is set if it contains the question and not only an
// answer.
func dialogue(raw []byte, item archive.Item) (nodes []archive.Node, whole bool, err error) {
	if rawjson.IsArray(raw) {
		var c archive.Conversation
		addChatMessages(&c, raw, item)
		if len(c.Skipped) > 0 {
			return nil, false, c.Skipped[0].Err
		}
		for part := range c.Parts() {
			nodes = append(nodes, part...)
		}
		for i := range nodes {
			nodes[i].ID = ""
		}
		return nodes, len(nodes) > 1, nil
	}
	body, mediaType := archive.TextBody(raw)
	if mediaType != content.TypeText {
		return nil, false, archive.Malformed("dialogue is neither a text nor a list")
	}
	role := ""
	for {
		at, next := len(body), ""
		var mark string
		for _, s := range speakers {
			if i := bytes.Index(body, []byte(s.mark)); i >= 0 && i < at {
				at, next, mark = i, s.role, s.mark
			}
		}
		turn := body[:at]
		switch {
		case role != "":
			nodes = append(nodes, archive.Node{Role: role, Body: bytes.TrimPrefix(turn, []byte(" "))})
			whole = whole || len(nodes) > 1
		case next == "" && len(turn) > 0:
			nodes = append(nodes, archive.Node{Role: "assistant", Body: turn})
		case len(bytes.TrimSpace(turn)) > 0:
			nodes = append(nodes, archive.Node{Role: "system", Body: turn})
		}
		if next == "" {
			break
		}
		body, role = body[at+len(mark):], next
	}
	for i := range nodes {
		nodes[i].At = item.At
	}
	return nodes, whole, nil
}
