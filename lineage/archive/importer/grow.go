package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/structure"
)

// Growing imports an input that grows, such as the session file of a running agent. After each Read the store has
// what an import of the lines so far would add. The cost of a Read depends on its new lines only.
//
// A Growing must be used by one goroutine. Other readers may read the same input into the same store and change its
// threads at the same time. After an error it cannot be used again: Close it, and read the input from its start with
// a new one, which finds what is stored.
type Growing struct {
	name    string
	session string // its source id
	// unplaced is the number of the last line that Unplaced returned, and held the memory of these lines.
	unplaced int64
	held     int64
	loader   *loader
	feed     *archive.Feed
	next     func() (*archive.Conversation, error, bool) // nil until the format is known
	stop     func()
	cancel   context.CancelFunc
	err      error // of the last Read
}

// Grow returns a reader of a growing input. name is the name of the input, with its path in its archive. The
// format is o.Format, or is detected from the bytes of the first Read; see Format.Grows.
func Grow(store *lineage.Store, name string, o Options) *Growing {
	g := &Growing{name: name, loader: newLoader(context.Background(), store, o), feed: archive.NewFeed(o.Placed != nil), stop: func() {}, cancel: func() {}}
	g.loader.grows = true
	g.loader.keep = o.Placed != nil
	return g
}

// Known states that the first lines of the input are in the store. spans returns the spans of the nodes of a line, as
// Options.Placed gave them. These lines are parsed, because later ones continue them, but they are not looked up and
// not given to Options.Placed again. Known must be called before the first Read, and that Read must get the input
// from its start.
func (g *Growing) Known(lines int64, spans func(line int64) []structure.SpanRef) {
	g.feed.Known(lines)
	g.loader.given = given{lines: lines, spans: spans, ends: make(map[structure.RunID]uint64)}
}

// Read reads r to its end. r has whole lines that follow those read before. When Read returns without an error, their
// messages are in the store and, unless Options.Unsynced is set, durable. Branches, title and metadata are as after
// an import of all lines so far. The report covers this Read.
//
// A session that has not stated its id is stored by a later Read, and Session is empty until then. If the session
// never states an id, Import stores the whole input under an id derived from its content.
func (g *Growing) Read(ctx context.Context, r io.Reader) (Report, error) {
	if g.err != nil {
		return Report{}, g.err
	}
	l := g.loader
	l.ctx, l.report, l.total = ctx, Report{}, added{}
	g.feed.Continue(ctx, r)
	err := g.read()
	if err != nil {
		g.err = err
		g.end()
	}
	l.close()
	return l.report, err
}

// Session returns the source id of the conversation that is being read, without Options.Prefix. It is empty before
// there is one, which there is in Options.Placed if a line has nodes.
func (g *Growing) Session() string { return g.session }

// Unplaced returns the lines that wait for the id of a session: the input may have no conversation at all. Options.Placed does not
// get them any more. If they turn out to have messages, Read returns ErrStale.
func (g *Growing) Unplaced() []Line {
	if g.session != "" {
		return nil
	}
	g.held += g.feed.Waiting()
	lines := linesOf(g.feed.Take())
	if len(lines) > 0 {
		g.unplaced = lines[len(lines)-1].Number
	}
	return lines
}

func linesOf(raw []archive.RawLine) []Line {
	lines := make([]Line, len(raw))
	for i := range raw {
		lines[i].RawLine = raw[i]
	}
	return lines
}

// Close ends reading. The caller must call it.
func (g *Growing) Close() {
	if g.err == nil {
		g.err = errClosed
	}
	g.end()
	g.loader.close()
}

var errClosed = errors.New("the input is closed")

func (g *Growing) end() {
	g.cancel()
	g.stop()
}

// open detects the format and starts reading. It reports whether there is anything to read.
func (g *Growing) open() (bool, error) {
	options, err := g.loader.options.reading()
	if err != nil {
		return false, err
	}
	in, f, err := g.feed.Open(g.name, options)
	if in == nil || err != nil {
		return false, err
	}
	g.loader.take(archive.Event{Input: in.Opened(f)})
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.next, g.stop = iter.Pull2(f.Conversations(ctx, in))
	return true, nil
}

// read reads up to the pause at the end of the current reader.
func (g *Growing) read() error {
	if g.next == nil {
		if begun, err := g.open(); !begun || err != nil {
			return err
		}
	}
	g.feed.Resume()
	for resumed := false; ; {
		c, err, more := g.next()
		var damage *archive.Damage
		switch {
		case g.feed.Err() != nil:
			return g.feed.Err()
		case !more && !g.feed.Ended():
			return fmt.Errorf("%s: format %s: %w", g.name, g.loader.format, archive.ErrCannotGrow)
		case !more:
			g.err = archive.ErrCannotGrow // for later reads
			return g.settle()
		case errors.As(err, &damage):
			g.loader.report.skip(damage)
			continue
		case err != nil:
			return err
		}
		held := c.SourceID == "" && len(c.Nodes) == 0 // by the reader, until it knows the id
		if c.Continues != nil {
			g.session = c.SourceID // also if it adds no message
		}
		if len(c.Nodes) > 0 || g.feed.Lines() > 0 && g.loader.open != nil {
			if err := g.take(c, !resumed); err != nil {
				return err
			}
			resumed = true
		}
		if paused, drained := g.feed.Paused(); paused {
			if ended, err := g.pause(held, drained); ended || err != nil {
				return err
			}
		}
		g.feed.Resume()
	}
}

// take loads a part of a conversation. first is set for the first one of a reading.
func (g *Growing) take(c *archive.Conversation, first bool) error {
	g.session = c.SourceID
	if g.loader.given.lacks(c.Nodes, g.unplaced) {
		return ErrStale
	}
	if first {
		if err := g.loader.resumeOpen(); err != nil {
			return err
		}
	}
	return g.load(c)
}

// pause places what was read up to a pause, unless the reader holds it. drained is set at the end of the current reader, where the
// reading ends.
func (g *Growing) pause(held, drained bool) (ended bool, err error) {
	switch {
	case held:
		if most := g.loader.options.Limits.OrDefault().Item; g.held+g.feed.Waiting() > most {
			return true, &archive.LimitError{Limit: "item", Most: most, What: "bytes before the id of a session", Err: archive.ErrTooLarge}
		}
	case drained && g.feed.Lines() > 0:
		return true, g.settle()
	case !drained:
		if err := g.loader.flush(); err != nil {
			return true, err
		}
		if g.loader.open != nil && g.loader.open.leftOut {
			return true, ErrDeleted
		}
		g.placed()
	}
	return drained, nil
}

// load loads a part of a conversation.
func (g *Growing) load(c *archive.Conversation) error {
	l := g.loader
	if err := l.conversation(c); err != nil {
		return err
	}
	if l.open != nil && l.open.leftOut {
		return ErrDeleted
	}
	if l.next.empty() {
		l.next.forget() // parsing known lines takes time, so the snapshot may be old
		l.next.release()
	}
	l.progress(false)
	return nil
}

// settle brings branches, title and metadata up to date.
func (g *Growing) settle() error {
	l := g.loader
	st := l.open
	if err := l.complete(); err != nil {
		return err
	}
	if st != nil {
		if st.leftOut {
			return ErrDeleted
		}
		st.thread.stage, st.settled = inStore, st.state
		if !st.derived {
			l.open = st
		}
	}
	g.placed()
	if err := l.sync(); err != nil {
		return err
	}
	l.progress(true)
	return nil
}

// placed passes the lines that were read to Options.Placed.
func (g *Growing) placed() {
	raw, nodes := g.feed.Take(), g.loader.placed
	g.loader.placed = nil
	if len(raw) == 0 {
		return
	}
	lines := linesOf(raw)
	for _, n := range nodes {
		if i := n.node.At.Line - lines[0].Number; i >= 0 && i < int64(len(lines)) {
			placement := n.nodes.at(n.node.index)
			placed := PlacedNode{Node: n.node.Node, Span: n.ref(placement), Kept: placement.kept}
			if c := n.node.copy; c != nil {
				placed.Node, placed.Copied = &archive.Node{At: n.node.At, Role: n.node.Role, Body: c.Body, Type: n.node.Type, Metadata: c.Metadata}, true
			}
			lines[i].Nodes = append(lines[i].Nodes, placed)
		}
	}
	g.loader.options.Placed(lines)
}
