package archive

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

var (
	// ErrCannotGrow is returned by Growing.Read for an input that has to be read whole, with Import.
	ErrCannotGrow = errors.New("the format is not read by lines")
	// ErrDeleted is returned by Growing.Read when the thread of the input was deleted from the store.
	ErrDeleted = errors.New("the thread was deleted")
	// ErrStale is returned by Growing.Read when the store no longer has messages that it had: read the
	// input from its start again, without Known.
	ErrStale = errors.New("the store no longer has messages of the input")
)

// Line is a line of a growing input.
type Line struct {
	// Number is the number of the line, from 1.
	Number int64
	// Raw is the line with its end, byte for byte. It is nil if the line is larger than Limits.Item.
	Raw []byte
	// Nodes are the messages and records that were read from the line, in order; none for a line that is blank
	// or cannot be read.
	Nodes []PlacedNode
}

// PlacedNode is a node with its span in the store.
type PlacedNode struct {
	*Node
	Span structure.SpanRef
	// Kept is set if the store has the message in another serialization.
	Kept bool
}

// Growing imports an input that grows, such as the session file of an agent that is running. After each Read
// the store has what an import of the lines so far adds, and the cost of a Read is that of its new lines.
//
// A Growing is for one goroutine. Others may read the same input into the same store, and change its threads,
// at the same time. After an error a Growing reads no more: close it, and read the input from its start with
// another one, which finds what is stored.
type Growing struct {
	store   *lineage.Store
	name    string
	options Options
	buf     bytes.Buffer
}

// Grow returns a reader of a growing input. name is the name of the input, with its path in its archive. The
// format is o.Format, or is detected from the bytes of the first Read.
func Grow(store *lineage.Store, name string, o Options) *Growing {
	return &Growing{store: store, name: name, options: o}
}

// Known states that the store has the first lines of the input. spans returns the spans of the nodes of a line,
// as Options.Placed gave them. These lines are parsed, because later ones continue them, but neither looked up
// nor given to Options.Placed again. Known must be called before the first Read, which gets the input from its
// start.
func (g *Growing) Known(lines int64, spans func(line int64) []structure.SpanRef) {}

// Read reads r to its end: whole lines that follow those read before. When it returns without an error, their
// messages are in the store and durable, and branches, title and metadata are as after an import of all lines
// so far. The report is that of this Read.
func (g *Growing) Read(ctx context.Context, r io.Reader) (Report, error) {
	if _, err := g.buf.ReadFrom(r); err != nil {
		return Report{}, err
	}
	return Import(ctx, g.store, Stream(g.name, bytes.NewReader(g.buf.Bytes())), g.options)
}

// Close ends reading. It must be called.
func (g *Growing) Close() {}
