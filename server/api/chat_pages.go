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
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
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
func (p *listPage) creation() (*creation, error) {
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
	for element, err := range all {
		if err != nil {
			return nil, false, err
		}
		if !passes(element) {
			continue
		}
		if page = append(page, element); len(page) > 4*size {
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

// created describes a list of what was created in a chat: its branches or its checkpoints.
type created[T any, R records.Record] struct {
	all     func(ctx context.Context, view backend.View, thread lineage.ThreadID) iter.Seq2[T, error]
	compare func(a, b T) int
	place   func(T) *creation
	// at returns an element with a place in the order, to compare others with.
	at func(*creation) (T, error)
	// record returns the record of an element. The error is ErrNotFound if the element was deleted.
	record func(ctx context.Context, reader *chat.ThreadReader, view backend.View, one T) (R, error)
}

// pageOfCreated returns a page of the branches or the checkpoints of a chat.
func pageOfCreated[T any, R records.Record](ctx context.Context, c *call, names *chatOf, p *listPage, elements *created[T, R]) (*list[R], error) {
	view := c.store.View()
	thread, err := view.Thread(ctx, names.thread)
	if err != nil {
		return nil, err
	}
	after, err := p.creation()
	if err != nil {
		return nil, err
	}
	passes := func(T) bool { return true }
	if after != nil {
		last, err := elements.at(after)
		if err != nil {
			return nil, errPage
		}
		passes = func(element T) bool { return elements.compare(element, last) > 0 }
	}
	page, more, err := pageOf(elements.all(ctx, view, thread.ID), passes, elements.compare, p.size())
	if err != nil {
		return nil, err
	}
	reader, out := chat.NewThreadReader(c.store, view, thread, nil), &list[R]{}
	for _, element := range page {
		record, err := elements.record(ctx, reader, view, element)
		if errors.Is(err, lineage.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, record)
	}
	if more {
		out.Next = elements.place(page[len(page)-1]).String()
	}
	return out, nil
}

// branches lists the branches of a chat, oldest first.
func (names *chatOf) branches(store *lineage.Store) *created[*structure.Branch, *chatBranch] {
	return &created[*structure.Branch, *chatBranch]{
		all: func(ctx context.Context, view backend.View, thread lineage.ThreadID) iter.Seq2[*structure.Branch, error] {
			return view.Branches(ctx, thread, "", "")
		},
		compare: (*structure.Branch).Compare,
		place: func(b *structure.Branch) *creation {
			return &creation{b.CreatedAt, b.Order, b.Context.String()}
		},
		at: func(place *creation) (*structure.Branch, error) {
			id, err := structure.ParseID[structure.ContextID](place.id)
			return &structure.Branch{CreatedAt: place.at, Order: place.order, Context: id}, err
		},
		record: func(ctx context.Context, reader *chat.ThreadReader, view backend.View, b *structure.Branch) (*chatBranch, error) {
			branch, err := reader.Branch(ctx, b)
			if err != nil {
				return nil, err
			}
			at, err := view.Context(ctx, b.Context)
			if err != nil {
				return nil, err
			}
			position, err := store.Position(ctx, at.Tip)
			if err != nil {
				return nil, err
			}
			length, record := int(position), names.branch(&branch)
			record.Length = &length
			return record, nil
		},
	}
}

// chatCheckpoints lists the checkpoints of a chat, newest first.
var chatCheckpoints = created[*structure.Checkpoint, *chatCheckpoint]{
	all: func(ctx context.Context, view backend.View, thread lineage.ThreadID) iter.Seq2[*structure.Checkpoint, error] {
		return view.Checkpoints(ctx, thread, "")
	},
	compare: func(a, b *structure.Checkpoint) int { return b.Compare(a) },
	place: func(k *structure.Checkpoint) *creation {
		return &creation{k.CreatedAt, k.Order, k.ID.String()}
	},
	at: func(place *creation) (*structure.Checkpoint, error) {
		id, err := structure.ParseID[structure.CheckpointID](place.id)
		return &structure.Checkpoint{CreatedAt: place.at, Order: place.order, ID: id}, err
	},
	record: func(ctx context.Context, reader *chat.ThreadReader, _ backend.View, k *structure.Checkpoint) (*chatCheckpoint, error) {
		checkpoint, err := reader.Checkpoint(ctx, k)
		if err != nil {
			return nil, err
		}
		return ofChatCheckpoint(&checkpoint), nil
	},
}
