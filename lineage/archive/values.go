package archive

import (
	"bytes"
	"context"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// eachItem reads an input whose items are conversations.
func eachItem(ctx context.Context, in *Input, read func(Item) (*Conversation, error)) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		for item, err := range in.values(ctx) {
			if err != nil {
				if !yield(nil, err) {
					return
				}
				continue
			}
			c, err := read(item)
			if err != nil {
				err = damaged(item.At, err)
				c = nil
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// values yields the values of the input like Items. With one value per line, damage is limited to a
// line.
func (in *Input) values(ctx context.Context) iter.Seq2[Item, error] {
	if !in.Head().byLine() {
		return in.Items(ctx)
	}
	return func(yield func(Item, error) bool) {
		for item, err := range in.Lines(ctx) {
			if err == nil {
				if bad := item.Valid(); bad != nil {
					item, err = Item{}, damaged(item.At, bad)
				}
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

// byLine reports whether an input has an object per line, possibly after a header. Formatted JSON
// has objects over several lines or indented.
func (h Head) byLine() bool {
	b := bytes.TrimLeft(bytes.TrimPrefix(h.Bytes, byteOrderMark), " \t\r\n")
	if rawjson.IsArray(b) {
		return false
	}
	if rawjson.IsObject(b) && len(b) > HeadSize/2 && bytes.IndexByte(b, '\n') < 0 {
		return true
	}
	for line := range bytes.Lines(b) {
		if line = bytes.TrimRight(line, " \t\r\n"); rawjson.IsObject(line) && checkJSON(line) == nil {
			return true
		}
	}
	return false
}
