package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/structure"
)

// creation is the place of a branch or checkpoint in the order of creation. As a token it is that of the last one of a page, which
// may be deleted before the next page is read.
type creation struct {
	at    time.Time
	order uint64
	id    string
}

func (k *creation) String() string {
	return fmt.Sprintf("%d.%d.%d.%s", k.at.Unix(), k.at.Nanosecond(), k.order, k.id)
}

// creation parses the token of a page, nil for none.
func (p *page) creation() (*creation, error) {
	if p.After == "" {
		return nil, nil
	}
	parts := strings.SplitN(p.After, ".", 4)
	if len(parts) != 4 {
		return nil, errPage
	}
	seconds, err := strconv.ParseInt(parts[0], 10, 64)
	nanos, err2 := strconv.ParseInt(parts[1], 10, 64)
	order, err3 := strconv.ParseUint(parts[2], 10, 64)
	if errors.Join(err, err2, err3) != nil {
		return nil, errPage
	}
	return &creation{time.Unix(seconds, nanos), order, parts[3]}, nil
}

// pageOf returns the first elements in an order, and whether there are more. It reads all of them, and keeps a few pages.
func pageOf[T any](all iter.Seq2[T, error], passes func(T) bool, compare func(a, b T) int, size int) (page []T, more bool, err error) {
	for one, err := range all {
		if err != nil {
			return nil, false, err
		}
		if !passes(one) {
			continue
		}
		if page = append(page, one); len(page) > 4*size {
			slices.SortFunc(page, compare)
			clear(page[size+1:])
			page = page[:size+1]
		}
	}
	slices.SortFunc(page, compare)
	if len(page) > size {
		return page[:size], true, nil
	}
	return page, false, nil
}

// pageOfBranches lists branches of a chat, oldest first.
func (c *call) pageOfBranches(ctx context.Context, of *chatOf, p *page) (*list[*chatBranch], error) {
	view := c.store.View()
	t, err := view.Thread(ctx, of.thread)
	if err != nil {
		return nil, err
	}
	after, err := p.creation()
	if err != nil {
		return nil, err
	}
	passes := func(*structure.Branch) bool { return true }
	if after != nil {
		id, err := structure.ParseID[structure.ContextID](after.id)
		if err != nil {
			return nil, errPage
		}
		key := &structure.Branch{CreatedAt: after.at, Order: after.order, Context: id}
		passes = func(b *structure.Branch) bool { return b.Compare(key) > 0 }
	}
	page, more, err := pageOf(view.Branches(ctx, t.ID, "", ""), passes, (*structure.Branch).Compare, p.size())
	if err != nil {
		return nil, err
	}
	r, out := chat.NewThreadReader(c.store, view, t, nil), &list[*chatBranch]{}
	for _, b := range page {
		is, err := r.Branch(ctx, b)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		at, err := view.Context(ctx, b.Context)
		if errors.Is(err, lineage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		length, err := c.store.Position(ctx, at.Tip)
		if err != nil {
			return nil, err
		}
		n, one := int(length), of.branch(&is)
		one.Length = &n
		out.Items = append(out.Items, one)
	}
	if more {
		last := page[len(page)-1]
		out.Next = (&creation{last.CreatedAt, last.Order, last.Context.String()}).String()
	}
	return out, nil
}

// pageOfCheckpoints lists checkpoints of a chat, newest first.
func (c *call) pageOfCheckpoints(ctx context.Context, of *chatOf, p *page) (*list[*chatCheckpoint], error) {
	view := c.store.View()
	t, err := view.Thread(ctx, of.thread)
	if err != nil {
		return nil, err
	}
	after, err := p.creation()
	if err != nil {
		return nil, err
	}
	passes := func(*structure.Checkpoint) bool { return true }
	if after != nil {
		id, err := structure.ParseID[structure.CheckpointID](after.id)
		if err != nil {
			return nil, errPage
		}
		key := &structure.Checkpoint{CreatedAt: after.at, Order: after.order, ID: id}
		passes = func(k *structure.Checkpoint) bool { return k.Compare(key) < 0 }
	}
	newest := func(a, b *structure.Checkpoint) int { return b.Compare(a) }
	page, more, err := pageOf(view.Checkpoints(ctx, t.ID, ""), passes, newest, p.size())
	if err != nil {
		return nil, err
	}
	r, out := chat.NewThreadReader(c.store, view, t, nil), &list[*chatCheckpoint]{}
	for _, k := range page {
		is, err := r.Checkpoint(ctx, k)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, ofChatCheckpoint(&is))
	}
	if more {
		last := page[len(page)-1]
		out.Next = (&creation{last.CreatedAt, last.Order, last.ID.String()}).String()
	}
	return out, nil
}
