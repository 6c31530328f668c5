package archive

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
)

// Options configure an import. The zero value of each field is its default.
type Options struct {
	// Format is the name of the archive's format. Default: detected for each file.
	Format string
	// Formats are the formats to detect. Default Formats().
	Formats []Format
	// UserID is the user of conversations for which the archive names none.
	UserID string
	// Prefix is put before source ids, to separate archives with colliding ids.
	Prefix string
	// Limits protect against hostile archives.
	Limits Limits
	// Unsynced leaves it to the caller to make what was imported durable, with Store.Sync.
	Unsynced bool
	// Files, when not nil, are files that are not read again if they have not changed.
	Files *Files
	// Progress, when not nil, is called from time to time, by one goroutine at a time.
	Progress func(Progress)
	// Metadata is a JSON object whose members are added to the metadata of each conversation.
	Metadata []byte
	// Rows asks formats that read databases for Conversation.Rows.
	Rows bool
	// Placed, when not nil, gets the lines of a [Growing] input with the spans of their nodes, each line once
	// and in order, after the commits that have them.
	Placed func([]Line)
}

// Progress is the progress of an import.
type Progress struct {
	// Read is the number of bytes read from the source, before decompression.
	Read int64
	// File is the input being read.
	File string

	Conversations, Messages, NewMessages int64
}

// maxReported limits the damages that a report lists per kind; the rest is counted.
const maxReported = 1000

// Report is the result of an import.
type Report struct {
	// Formats are the formats found.
	Formats []string
	// Unchanged is the number of files that were not read, because they have not changed since an earlier import.
	Unchanged int64
	// Conversations and Messages are the numbers in the archive.
	Conversations, Messages int64
	// NewConversations and NewMessages are the numbers added. SharedMessages counts messages of
	// forked and resumed conversations that are shared with the original. After a failure, these
	// and NewBytes describe what is in the store; a conversation counts as soon as its beginning is
	// stored.
	NewConversations, NewMessages, SharedMessages int64
	// Kept counts messages that are stored with the same content but are serialised differently in
	// this archive: the store keeps its version.
	Kept int64
	// NewBytes is the size of new content.
	NewBytes int64
	// Converted counts messages whose bytes the store does not return completely (see
	// Node.Converted). Opaque counts JSON messages that are stored whole instead of in pieces,
	// because they have more than 16 MiB or 1,000 pieces.
	Converted, Opaque int64
	// Skipped are items that could not be used, Repaired irregular items that were used. The counts
	// include those beyond the listed ones.
	Skipped, Repaired           []*Damage
	SkippedCount, RepairedCount int64
	// Ignored are files in no known format.
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

// Import imports an archive into a store.
//
// A conversation becomes a thread under its source id; branches become branches, subagents and logs
// contexts without a name. Existing messages are not stored again: importing an archive twice adds
// nothing, and importing a newer export adds what is new. Damaged items are skipped and reported.
//
// An import makes many commits. All are durable when it returns. After a failure, earlier commits
// remain, and importing again continues. Others may change threads during their import, and several
// imports of one archive may run at once: what they add is in the store once. A thread that is
// deleted during its import is left out and reported.
func Import(ctx context.Context, store *lineage.Store, src Source, o Options) (Report, error) {
	b, err := Begin(ctx, src, o)
	if err != nil {
		return Report{}, err
	}
	defer b.Close()
	return b.Into(store)
}

// Read yields the conversations of an archive without storing them, and a *Damage for each skipped
// item; for a file in no known format, it matches ErrUnknownFormat. Any other error ends the
// sequence.
func Read(ctx context.Context, src Source, o Options) iter.Seq2[*Conversation, error] {
	return func(yield func(*Conversation, error) bool) {
		formats, err := o.formats()
		if err != nil {
			yield(nil, err)
			return
		}
		r := reading{opening: opening{ctx: ctx, formats: formats, limits: o.Limits.orDefault(), rows: o.Rows}, forced: o.Format != ""}
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

// formats returns the formats to detect. It is an error if options are invalid.
func (o Options) formats() ([]Format, error) {
	if o.Metadata != nil && (!rawjson.Valid(o.Metadata) || !rawjson.IsObject(o.Metadata)) {
		return nil, fmt.Errorf("metadata of conversations: %w", malformed("not a JSON object"))
	}
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

// event is a result of reading.
type event struct {
	conversation *Conversation
	size         int64 // of the conversation, in the budget
	damage       *Damage
	repair       *Damage
	ignored      string // a file in no known format
	// The current format and file for what follows: file is its name for reports, title its path
	// for titles.
	format, file, title string
	read                int64
	// of is the file that a conversation was read from, nil if it is not remembered. unchanged is set for a file that was not read.
	of        *fileRead
	unchanged bool
}

// readAhead limits the bytes of conversations that wait to be stored.
const readAhead = 32 << 20

// reading is the reading half of an import.
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
	r.opening.unchanged = func() error { return r.send(event{unchanged: true}) }
	r.opening.read = r.input
	return r.opening.source(src)
}

func (r *reading) send(e event) error {
	e.read, e.of = r.read, r.opening.reading
	if e.of != nil && (e.damage != nil || e.ignored != "" || e.conversation != nil && len(e.conversation.Skipped) > 0) {
		e.of.partly = true
	}
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

// input reads an input.
func (r *reading) input(in *Input) error {
	f, ok := r.formats[0], r.forced
	if !ok {
		f, ok = detect(r.formats, in)
	}
	if !ok {
		if _, err := in.reader.Peek(1); err == nil {
			return r.send(event{ignored: in.place() + emptyName(in.place())})
		}
		return context.Cause(r.ctx) // an empty file, or cancelled
	}
	if err := r.send(event{format: f.Name, file: in.place(), title: in.title()}); err != nil {
		return err
	}
	said, kept, reported := false, false, false
	for c, err := range f.all(r.ctx, in) {
		var damage *Damage
		switch {
		case errors.As(err, &damage):
			reported = true
			err = r.send(event{damage: damage})
		case err == nil:
			said = said || len(c.Empty) > 0 || slices.ContainsFunc(c.Nodes, func(n Node) bool { return n.Aside != asideLog })
			kept = kept || len(c.Nodes) > 0
			reported = reported || len(c.Skipped) > 0
			err = r.send(event{conversation: c})
		}
		if err != nil {
			return err
		}
	}
	if err := context.Cause(r.ctx); err != nil {
		return err // the apparent end may be a cancellation
	}
	switch {
	case said || reported:
		return nil
	case kept:
		return r.send(event{repair: damaged(Position{File: in.place()}, fmt.Errorf("%w: read as %s; its records are kept", ErrNoMessages, f.Name))})
	}
	return r.send(event{damage: damaged(Position{File: in.place()}, fmt.Errorf("%w: read as %s", ErrNoMessages, f.Name))})
}

func emptyName(name string) string {
	if name == "" {
		return "input"
	}
	return ""
}

// size estimates the memory of the conversation.
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

// budget limits the memory of waiting conversations. One that exceeds it waits until it is alone.
type budget struct {
	mu          sync.Mutex
	free        *sync.Cond
	used, limit int64
	closed      bool
}

func newBudget(limit int64) *budget {
	b := &budget{limit: limit}
	b.free = sync.NewCond(&b.mu)
	return b
}

func (b *budget) take(n int64) {
	b.mu.Lock()
	for b.used > 0 && b.used+n > b.limit && !b.closed {
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
