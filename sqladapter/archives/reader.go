package archives

import (
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/lineage/archive"
)

// reader reads a database item by item, within the limits of its input. An item is a checkpoint, a
// request with its response, or a message of a tree.
type reader struct {
	*database
	in    *archive.Input
	yield func(*archive.Conversation, error) bool
	items int64
	item  allowance // of the current item
	over  error     // why nothing more is read of the input
}

// allowance is what an item may still take.
type allowance struct {
	in      *archive.Input
	bytes   int64
	objects int64
	values  int // nested values
}

// maxValues is the maximum number of nested values in an item. A value takes up to 40 bytes of
// memory and at least one of the file.
const maxValues = 8 << 20

var errTooMany = fmt.Errorf("%w: too many values in it", errPacked)

// object counts an object.
func (a *allowance) object() error {
	if a.objects--; a.objects < 0 {
		return &archive.LimitError{Limit: "objects", Most: a.in.MaxObjects(), What: "objects in an item", Err: archive.ErrTooLarge}
	}
	return nil
}

// value counts a value.
func (a *allowance) value() error {
	if a.values--; a.values < 0 {
		return errTooMany
	}
	return nil
}

// next begins the next item of the input.
func (r *reader) next(inside string) archive.Position {
	r.items++
	r.begin()
	return archive.Position{File: r.in.Name, Item: r.items, Inside: inside}
}

// begin gives what is read next an allowance of its own.
func (r *reader) begin() {
	r.item = allowance{in: r.in, bytes: r.in.MaxItem(), objects: r.in.MaxObjects(), values: maxValues}
}

// rowBytes is what a row counts beside its values, so that empty ones count too.
const rowBytes = 16

// take counts bytes of a row for the item.
func (r *reader) take(n int64) error {
	if r.over != nil {
		return r.over
	}
	if r.item.bytes -= n; r.item.bytes < 0 {
		return &archive.LimitError{Limit: "item", Most: r.in.MaxItem(), What: "bytes", Err: archive.ErrTooLarge}
	}
	r.over = r.in.Expand(n+rowBytes, r.size)
	return r.over
}

// takeRow counts a row for the item.
func (r *reader) takeRow(v row) error {
	size, _ := v[sizeColumn].(int64)
	return r.take(size)
}

// each calls visit for each row of a query and counts it for the item. An error of visit stops it.
func (r *reader) each(ctx context.Context, query string, args []any, visit func(row) error) error {
	return r.rows(ctx, r.item.bytes, query, args, func(v row) error {
		if err := r.takeRow(v); err != nil {
			return err
		}
		return visit(v)
	})
}

// eachItem calls visit for each row of a query. The row belongs to an item that visit begins, and
// lacks values if it is larger than an item may be: see takeRow.
func (r *reader) eachItem(ctx context.Context, query string, args []any, visit func(row) error) error {
	return r.rows(ctx, r.in.MaxItem(), query, args, visit)
}

// skip reports damage to an item, after which the next is read. It returns an error if none can be
// read.
func (r *reader) skip(ctx context.Context, at archive.Position, damage error) error {
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case r.over != nil:
		return r.over
	case !r.yield(nil, &archive.Damage{At: at, Err: damage}):
		return errStopped
	}
	return nil
}

// end reports the error that ended reading.
func (r *reader) end(ctx context.Context, err error) {
	if err != nil && !errors.Is(err, errStopped) {
		r.yield(nil, whole(ctx, r.in, err))
	}
}

// isLimit reports whether an error is that of a limit.
func isLimit(err error) bool {
	var limit *archive.LimitError
	return errors.As(err, &limit)
}

// errStopped stops a query whose rows are no longer needed.
var errStopped = errors.New("stopped")

// whole returns the error for an input that cannot be read further: damage, unless the caller has
// cancelled.
func whole(ctx context.Context, in *archive.Input, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return &archive.Damage{At: archive.Position{File: in.Name, Inside: "the rest of the input"}, Err: err}
}

// Approximate size of the parts of a conversation.
const (
	partNodes = 512
	partBytes = 4 << 20
)

// part collects the nodes of a conversation and yields them in parts.
type part struct {
	*archive.Conversation
	r     *reader
	bytes int
	sent  bool // a part was yielded
}

// add adds a node.
func (p *part) add(n archive.Node) {
	p.Nodes = append(p.Nodes, n)
	p.bytes += len(n.Body) + len(n.Metadata)
	for _, a := range n.Attachments {
		p.bytes += len(a.Body)
	}
}

// flush yields what was added if it is large.
func (p *part) flush() error {
	if len(p.Nodes) < partNodes && p.bytes < partBytes {
		return nil
	}
	c := *p.Conversation
	c.More = true
	p.Nodes, p.Rows, p.Repairs, p.bytes, p.sent = nil, nil, nil, 0, true
	return p.send(&c)
}

// finish yields the rest, unless the conversation is empty.
func (p *part) finish() error {
	if len(p.Nodes) == 0 && !p.sent {
		return nil
	}
	return p.send(p.Conversation)
}

func (p *part) send(c *archive.Conversation) error {
	if !p.r.yield(c, nil) {
		return errStopped
	}
	return nil
}
