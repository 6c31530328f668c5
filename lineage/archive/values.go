package archive

import (
	"context"
	"iter"
)

// Values yields the values of the input like Items. If the input has one value per line, damage is limited to one
// line.
func (in *Input) Values(ctx context.Context) iter.Seq2[Item, error] {
	if !in.Head().byLine() {
		return in.Items(ctx)
	}
	return func(yield func(Item, error) bool) {
		for item, err := range in.Lines(ctx) {
			if err == nil {
				if bad := item.Valid(); bad != nil {
					item, err = Item{}, Damaged(item.At, bad)
				}
			}
			if !yield(item, err) {
				return
			}
		}
	}
}

// EachItem reads an input in which each item is a conversation.
func EachItem(ctx context.Context, in *Input, read func(Item) (*Conversation, error)) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		for item, err := range in.Values(ctx) {
			var c *Conversation
			if err == nil {
				if c, err = read(item); err != nil {
					c, err = nil, Damaged(item.At, err)
				}
			}
			if !yield(c, err) {
				return
			}
		}
	}
}
