package archives

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/archive"
)

// reader reads a database item by item, within the limits of its input. An item is a checkpoint, a
// request with its response, or a message of a tree.
type reader struct {
	*database
	in      *archive.Input
	yield   func(*archive.Conversation, error) bool
	items   int64
	item    allowance // of the current item
	stopped error     // the reason why the rest of the input is not read
}

// readInPlace reads a database that may have credentials. It is read only where its program has it: a copy, such as a
// file in an archive, would have to be written to disk again, and is refused.
func readInPlace(ctx context.Context, in *archive.Input, read func(r reader) error) conversations {
	return func(yield func(*archive.Conversation, error) bool) {
		if in.DiskPath() == "" {
			yield(nil, &archive.Damage{At: archive.Position{File: in.Name}, Err: fmt.Errorf("%w: it may have credentials, and is read only where its program has it", archive.ErrRefused)})
			return
		}
		db, done, err := openDatabase(ctx, in)
		if err != nil {
			yield(nil, whole(ctx, in, err))
			return
		}
		defer done()
		r := reader{database: db, in: in, yield: yield}
		r.end(ctx, read(r))
	}
}

// next begins the next item of the input.
func (r *reader) next(inside string) archive.Position {
	r.items++
	r.begin()
	return archive.Position{File: r.in.Name, Item: r.items, Inside: inside}
}

// begin resets the allowance.
func (r *reader) begin() {
	r.item = allowance{in: r.in, bytes: r.in.MaxItem(), objects: r.in.MaxObjects(), values: maxValues}
}

// rowBytes is charged for each row, so that empty rows count too.
const rowBytes = 16

// take charges bytes to the item.
func (r *reader) take(n int64) error {
	if r.stopped != nil {
		return r.stopped
	}
	if r.item.bytes -= n; r.item.bytes < 0 {
		return &archive.LimitError{Limit: "item", Most: r.in.MaxItem(), What: "bytes", Err: archive.ErrTooLarge}
	}
	r.stopped = r.in.Expand(n+rowBytes, r.size)
	return r.stopped
}

// takeRow charges a row to the item.
func (r *reader) takeRow(v row) error {
	size, _ := v[sizeColumn].(int64)
	return r.take(size)
}

// visitBytes is charged for each row that a query visits without an index. The programs' own databases have indexes for
// all that is looked up for each session or message; without them many lookups would read the whole database each.
const visitBytes = 4

// rows calls visit for each row of a query, and charges the rows that it visits to the input.
func (r *reader) rows(ctx context.Context, limit int64, query string, args []any, visit func(row) error) error {
	n, err := r.visited(ctx, query, append([]any{limit}, args...))
	if err != nil {
		return err
	}
	if r.stopped == nil && n > 0 {
		r.stopped = r.in.Expand(n*visitBytes, r.size)
	}
	if r.stopped != nil {
		return r.stopped
	}
	return r.database.rows(ctx, limit, query, args, visit)
}

// each calls visit for each row of a query and charges it to the item. An error of visit stops it.
func (r *reader) each(ctx context.Context, query string, args []any, visit func(row) error) error {
	return r.rows(ctx, r.item.bytes, query, args, func(v row) error {
		if err := r.takeRow(v); err != nil {
			return err
		}
		return visit(v)
	})
}

// eachItem calls visit for each row of a query; visit begins an item for the row and charges it (takeRow). Values of
// rows that are larger than an item may be are left out.
func (r *reader) eachItem(ctx context.Context, query string, args []any, visit func(row) error) error {
	return r.rows(ctx, r.in.MaxItem(), query, args, visit)
}

// skip reports a damaged item, and returns an error if reading cannot continue: nothing may be yielded after the caller has stopped.
func (r *reader) skip(ctx context.Context, at archive.Position, damage error) error {
	switch {
	case errors.Is(damage, errStopped):
		return errStopped
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case r.stopped != nil:
		return r.stopped
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

// isLimit reports whether an error means that a limit was exceeded.
func isLimit(err error) bool {
	var limit *archive.LimitError
	return errors.As(err, &limit)
}

// errStopped stops a query whose rows are no longer needed.
var errStopped = errors.New("stopped")

// whole turns an error that ends reading into damage of the whole input, unless the caller canceled.
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

// partCollector collects the nodes of a conversation and yields them in parts.
type partCollector struct {
	*archive.Conversation
	r     *reader
	bytes int
	sent  bool // a part was yielded
}

// add adds a node.
func (p *partCollector) add(n archive.Node) {
	p.Nodes = append(p.Nodes, n)
	p.bytes += len(n.Body) + len(n.Metadata)
	for _, a := range n.Attachments {
		p.bytes += len(a.Body)
	}
}

// flush yields the collected nodes if they are large enough.
func (p *partCollector) flush() error {
	if len(p.Nodes) < partNodes && p.bytes < partBytes {
		return nil
	}
	c := *p.Conversation
	c.More = true
	p.Nodes, p.Rows, p.Repairs, p.bytes, p.sent = nil, nil, nil, 0, true
	return p.send(&c)
}

// finish yields the rest, unless the conversation is empty.
func (p *partCollector) finish() error {
	if len(p.Nodes) == 0 && !p.sent {
		return nil
	}
	return p.send(p.Conversation)
}

func (p *partCollector) send(c *archive.Conversation) error {
	if !p.r.yield(c, nil) {
		return errStopped
	}
	return nil
}

// conversations is the sequence that a format yields.
type conversations = iter.Seq2[*archive.Conversation, error]
