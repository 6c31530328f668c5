package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/lineage-store/lineage/lineage"
)

// Options configure an import. The zero value of each field is a default.
type Options struct {
	// Format is the name of the archive's format. Default: told from its content,
	// file by file.
	Format string
	// Formats are those that are known. Default Formats().
	Formats []Format
	// UserID is whose conversations they are, where the archive does not say.
	UserID string
	// Prefix is put before the source ids of conversations, to keep archives apart
	// whose ids may be the same.
	Prefix string
	// Limits bound what a hostile archive can do.
	Limits Limits
	// Progress, when not nil, is told now and then how far the import has come. It
	// is called by one goroutine at a time.
	Progress func(Progress)
}

// Progress is how far an import has come.
type Progress struct {
	// Read counts the bytes read of the source, as it lies there.
	Read int64
	// File is the input being read.
	File string

	Conversations, Messages, NewMessages int64
}

// maxReported is how many damages of a sort a report names; the rest it counts.
const maxReported = 1000

// Report tells what an import did.
type Report struct {
	// Formats are the names of the formats that were read.
	Formats []string
	// Conversations and Messages are what the archive has.
	Conversations, Messages int64
	// NewConversations and NewMessages are what was added. SharedMessages are messages
	// of forked and resumed conversations that are those of the other one. When an import
	// fails, these and NewBytes are what is in the store nevertheless; a conversation
	// counts as soon as the beginning of it is there.
	NewConversations, NewMessages, SharedMessages int64
	// Kept are messages that the store has at their places and that say the same there, in
	// objects that are written in another way now: the store keeps what it has.
	Kept int64
	// NewBytes is the size of the content that the store did not have.
	NewBytes int64
	// Converted are messages of which the store does not give back all of the archive's bytes
	// (see Node.Converted). Opaque are messages of JSON that are stored whole, because they are
	// not taken apart into what they say: those of more than 16 MiB or 1,000 pieces.
	Converted, Opaque int64
	// Skipped are items that could not be used, SkippedCount how many: more than
	// are listed when they are very many. Repaired are those that are odd, and how
	// they were taken.
	Skipped, Repaired           []*Damage
	SkippedCount, RepairedCount int64
	// Ignored are files of no known format.
	Ignored      []string
	IgnoredCount int64
}

func (r *Report) skip(d *Damage) {
	if r.SkippedCount++; r.SkippedCount <= maxReported {
		r.Skipped = append(r.Skipped, d)
	}
}

func (r *Report) repair(d *Damage) {
	if r.RepairedCount++; r.RepairedCount <= maxReported {
		r.Repaired = append(r.Repaired, d)
	}
}

// Import reads an archive into a store.
//
// A conversation becomes a thread under its source id; its branches become
// branches, subagents and logs contexts without a name. What the store has is not
// stored again: importing an archive twice adds nothing, and importing a newer
// export adds what is new. A damaged item is left out and listed in the report.
//
// The import is many commits, and all of them survive power loss when it returns.
// When it fails, what came before is in the store, and importing again goes on from
// there. If others change a thread while it is imported into, the import ends with
// an error that matches lineage.ErrConflict or lineage.ErrExists.
func Import(ctx context.Context, store *lineage.Store, src Source, o Options) (Report, error) {
	b, err := Begin(ctx, src, o)
	if err != nil {
		return Report{}, err
	}
	defer b.Close()
	return b.Into(store)
}

// Read yields what is in an archive without storing it: the conversations, and a
// *Damage for each item that is left out; a file of no known format is one that
// matches ErrUnknownFormat. Any other error ends it.
func Read(ctx context.Context, src Source, o Options) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		formats, err := o.formats()
		if err != nil {
			yield(nil, err)
			return
		}
		r := reading{opening: opening{ctx: ctx, formats: formats, limits: o.Limits.orDefault()}, forced: o.Format != ""}
		r.take = func(e event) error {
			more := true
			switch {
			case e.conversation != nil:
				more = yield(e.conversation, nil)
			case e.damage != nil:
				more = yield(nil, e.damage)
			case e.ignored != "":
				more = yield(nil, damaged(Position{File: e.ignored}, ErrUnknownFormat))
			}
			if !more {
				return errStopped
			}
			return nil
		}
		if err := r.run(src); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// formats returns the formats to choose from.
func (o Options) formats() ([]Format, error) {
	formats := o.Formats
	if formats == nil {
		formats = Formats()
	}
	if o.Format == "" {
		return formats, nil
	}
	i := slices.IndexFunc(formats, func(f Format) bool { return f.Name == o.Format })
	if i < 0 {
		return nil, fmt.Errorf("format %q: %w", o.Format, ErrUnknownFormat)
	}
	return formats[i : i+1], nil
}

var errStopped = errors.New("stopped")

// event is something that was read.
type event struct {
	conversation *Conversation
	size         int64 // of the conversation, in the budget
	damage       *Damage
	ignored      string // a file of no known format
	// What is read from here on: file is the name of the file for reports, title its path
	// for titles.
	format, file, title string
	read                int64
}

// readAhead is how many bytes of conversations wait to be stored.
const readAhead = 32 << 20

// reading is the half of an import that reads.
type reading struct {
	opening
	forced bool
	events chan event
	budget *budget
	take   func(event) error // instead of sending to events
	read   int64
	err    error
}

func (r *reading) run(src Source) error {
	r.opening.passed = func(n int64) { r.read += n }
	r.opening.skip = func(d *Damage) { _ = r.send(event{damage: d}) }
	r.opening.read = r.input
	return r.opening.source(src)
}

func (r *reading) send(e event) error {
	e.read = r.read
	if r.take != nil {
		return r.take(e)
	}
	if e.conversation != nil {
		e.size = e.conversation.size()
		r.budget.take(e.size)
	}
	select {
	case r.events <- e:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// input reads one input.
func (r *reading) input(in *Input) error {
	f, ok := r.formats[0], r.forced
	if !ok {
		f, ok = detect(r.formats, in)
	}
	if !ok {
		if _, err := in.reader.Peek(1); err == nil {
			return r.send(event{ignored: in.place() + emptyName(in.place())})
		}
		return context.Cause(r.ctx) // an empty file, if nothing else
	}
	if err := r.send(event{format: f.Name, file: in.place(), title: in.title()}); err != nil {
		return err
	}
	said, reported := false, false
	for c, err := range f.all(r.ctx, in) {
		var damage *Damage
		switch {
		case errors.As(err, &damage):
			reported = true
			err = r.send(event{damage: damage})
		case err == nil:
			said = said || slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.Aside != asideLog })
			reported = reported || len(c.Skipped) > 0
			err = r.send(event{conversation: c})
		}
		if err != nil {
			return err
		}
	}
	if err := context.Cause(r.ctx); err != nil {
		return err // what seems to be the end may be of the context
	}
	if said || reported {
		return nil
	}
	return r.send(event{damage: damaged(Position{File: in.place()}, fmt.Errorf("%w: read as %s, it has none", ErrNoMessages, f.Name))})
}

func emptyName(name string) string {
	if name == "" {
		return "input"
	}
	return ""
}

// size is about how much memory the conversation takes.
func (c *Conversation) size() int64 {
	n := 256 + len(c.Metadata) + len(c.Title)
	for i := range c.Nodes {
		node := &c.Nodes[i]
		n += 256 + len(node.Body) + len(node.Metadata)
		for k := range node.Attachments {
			n += 64 + len(node.Attachments[k].Body)
		}
	}
	return int64(n)
}

// budget bounds what is in memory: what exceeds it has to be alone.
type budget struct {
	mu         sync.Mutex
	free       *sync.Cond
	used, most int64
	closed     bool
}

func newBudget(most int64) *budget {
	b := &budget{most: most}
	b.free = sync.NewCond(&b.mu)
	return b
}

func (b *budget) take(n int64) {
	b.mu.Lock()
	for b.used > 0 && b.used+n > b.most && !b.closed {
		b.free.Wait()
	}
	b.used += n
	b.mu.Unlock()
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
	b.free.Signal()
}

func (b *budget) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.free.Broadcast()
}
