package chats

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// entryReader reads an entry of a mapping. hasMessage reports whether it has one.
type entryReader func(id string, raw []byte, at archive.Position) (n archive.Node, hasMessage bool, bad error)

// mappingTree returns a tree of the entries of a mapping in an item.
func mappingTree(item archive.Item, read entryReader) archive.Tree {
	return archive.Tree{At: item.At, Of: item, Node: func(raw []byte) archive.Node {
		m := rawjson.MemberOf(raw)
		n, _, _ := read(m.Key, m.Value, item.At)
		return n
	}}
}

// addMapping adds the entries of a mapping, which are by id. read reads one.
func addMapping(c *archive.Conversation, t *archive.Tree, mapping []byte, read entryReader) {
	for m := range rawjson.Members(mapping) {
		n, hasMessage, bad := read(m.Key, m.Value, t.At)
		switch {
		case hasMessage:
			t.Add(n, m.In(mapping), true)
		case rawjson.IsObject(m.Value):
			t.Skip(n.ID, n.Parent)
		}
		if bad != nil {
			at := t.At
			at.Inside = "entry " + m.Key
			c.Skip(at, bad)
		}
	}
}

// mappingEntry reads what stands around the message of an entry. The message is nil if there is none.
func mappingEntry(id string, raw []byte, at archive.Position) (n archive.Node, message []byte, bad error) {
	n = archive.Node{ID: id, At: at}
	if !rawjson.IsObject(raw) {
		return n, nil, archive.Malformed("it is not an object")
	}
	var rest rawjson.Object
	for m := range rawjson.Members(raw) {
		switch m.Key {
		case "id", "children":
		case "parent":
			n.Parent = rawjson.Str(m.Value)
		case "message":
			message = m.Value
		default:
			rest.Add(m)
		}
	}
	if !rawjson.IsObject(message) {
		if !rawjson.IsNull(message) {
			bad = archive.Malformed("its message is not an object")
		}
		return n, nil, bad
	}
	n.Give(message)
	n.Metadata = rest.Bytes()
	return n, message, nil
}

// readItems yields the conversations that read returns for each item of an input.
func readItems(ctx context.Context, in *archive.Input, read func(archive.Item, func(*archive.Conversation, error) bool) bool) iter.Seq2[*archive.Conversation, error] {
	return func(yield func(*archive.Conversation, error) bool) {
		for item, err := range in.Items(ctx) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			if !rawjson.IsObject(item.Raw) {
				if !yield(nil, archive.Damaged(item.At, archive.Malformed("not an object"))) {
					return
				}
				continue
			}
			if !read(item, yield) {
				return
			}
		}
	}
}
