package importer

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// loader turns conversations into commits.
type loader struct {
	ctx     context.Context
	writer  *write.Writer
	engine  backend.Engine
	options Options
	next    *filling
	applied bool  // a commit was applied
	total   added // by the commits that were applied
	hash    fieldHash
	// met maps the hash of a source id to the file in which the conversation was last met. copies
	// counts equal conversations without an id in the current file.
	met    map[uint64]uint32
	copies map[uint64]uint64
	number uint32        // of the file
	inFile int           // conversations in the file so far
	of     *archive.File // that the current conversation is from, nil for none
	seen
	tick    int
	created int64 // new messages

	// part is the size of the part of a conversation that is being loaded, partIn the commit that keeps it.
	part   int64
	partIn *filling
	open   *loading // the current conversation, which may continue
	// replaying is set while a commit is filled again: reports were made before.
	replaying bool

	// Of an input that grows: the lines that are known, and the nodes of the others if they are asked for.
	grows  bool
	given  given
	keep   bool
	placed []item
}

func newLoader(ctx context.Context, store *lineage.Store, o Options) *loader {
	writer := write.Of(store)
	l := &loader{
		ctx: ctx, writer: writer, engine: writer.Engine(), options: o,
		number: 1, met: make(map[uint64]uint32), copies: make(map[uint64]uint64),
	}
	l.next = l.newFilling()
	return l
}

// all loads all events.
func (l *loader) all(events iter.Seq[archive.Event]) error {
	for e := range events {
		switch {
		case e.Conversation != nil:
			l.read, l.part, l.partIn, l.of = e.Read, e.Conversation.Size(), nil, e.File
			if len(e.Conversation.Skipped) > 0 {
				l.files.leftOut(e.File)
			}
			err := l.conversation(e.Conversation)
			if limit := (*archive.LimitError)(nil); errors.As(err, &limit) {
				return errors.Join(err, l.flush(), l.sync()) // keep what was read before
			}
			if err != nil {
				return err
			}
			l.progress(false)
		case e.Input != nil:
			if err := l.finishOpen(); err != nil {
				return err
			}
			l.number++
			l.inFile = 0
			clear(l.copies)
			l.take(e)
		default:
			l.take(e)
		}
	}
	if err := l.complete(); err != nil {
		return err
	}
	if err := l.sync(); err != nil {
		return err
	}
	l.progress(true)
	return nil
}

// complete completes and commits what was loaded.
func (l *loader) complete() error {
	if err := l.finishOpen(); err != nil {
		return err
	}
	if err := l.flush(); err != nil {
		return err
	}
	// Conversations with only shared messages may have added nothing else.
	l.total.shared += l.next.added.shared
	l.next.added.shared = 0
	return nil
}

// close completes the report, which counts only what is in the store.
func (l *loader) close() {
	l.next.forget()
	l.report.NewConversations, l.report.NewMessages = l.total.conversations, l.total.messages
	l.report.SharedMessages, l.report.NewBytes = l.total.shared, l.total.bytes
}

// repair reports a repair.
func (l *loader) repair(d *archive.Damage) {
	if !l.replaying {
		l.report.repair(d)
	}
}

func (l *loader) progress(last bool) {
	if l.options.Progress == nil {
		return
	}
	if l.tick++; last || l.tick%256 == 0 {
		l.options.Progress(Progress{
			Read: l.read, File: l.file, Conversations: l.report.Conversations, Messages: l.report.Messages, NewMessages: l.created,
		})
	}
}

// loading is a conversation being loaded.
type loading struct {
	header archive.Conversation // without nodes
	// derived is set if the source id is derived from the whole content of the conversation, so
	// that an equal id means equal content.
	derived bool
	// again is set if the archive had an earlier part of the conversation. Without a Current, that
	// part determines the current node.
	again bool
	// sought is set after the conversation that it was copied from was looked for. copiedFrom is its thread, zero for none, and
	// copies is set if its lines have other ids and times there.
	sought     bool
	copiedFrom structure.ThreadID
	copies     bool
	// lost is set if the thread was deleted during the import: the rest is left out.
	lost   bool
	format string
	// runOf is the title of the only run of an agent in a file.
	runOf   string
	thread  *threadState
	nodes   []loaded
	byID    map[string]int32
	asides  []string // names; 0 is the conversation itself
	asideOf map[string]int32
	// named are the nodes with named branches.
	named []namedHead
	last  []int32 // the last node of each aside, -1 for none
	// leaves are the nodes without kids, in order.
	leaves []int32
	round  uint32 // counts how often contexts were matched
	// grew is set if a node was added since resume. state is the checksum of the archive's state that finish leaves in
	// the thread, settled the one that an input that grows found there at its begin, or left there in its last round.
	grew           bool
	state, settled string
}

// loaded is the part of a node that is retained.
type loaded struct {
	ref    structure.SpanRef
	parent int32
	aside  int32
	mark   uint32 // distinguishes it from the other nodes, in threads' metadata
	kids   bool   // has children in this archive
	// stored is set if the span was already in the store, foreign if it belongs to another thread.
	// kept is set if the store has the message in another serialization.
	stored, foreign, kept bool
	adopted               bool   // from the store, not from this archive
	visited               uint32 // the latest loading.round in which walk visited it
	created               time.Time
}

// conversation loads a conversation, or a part of one.
func (l *loader) conversation(c *archive.Conversation) error {
	for _, d := range c.Repairs {
		l.report.repair(d)
	}
	for _, d := range c.Skipped {
		l.report.skip(d)
	}
	l.report.RepairedCount += c.RepairsMore
	l.report.SkippedCount += c.SkippedMore
	st := l.open
	if st == nil || st.derived || st.header.SourceID != l.options.Prefix+c.SourceID {
		l.inFile++
		if err := l.finishOpen(); err != nil {
			return err
		}
		st = nil
	}
	if st == nil {
		st = &loading{asides: []string{""}, asideOf: map[string]int32{"": 0}, last: []int32{-1}}
		l.open = st
	}
	merge(&st.header, c)
	if st.lost {
		return nil
	}
	if st.thread == nil {
		if l.next.empty() {
			l.next.Reset(l.writer.Now()) // the source may have been slow
		}
		id := l.options.Prefix + c.SourceID
		if c.SourceID == "" {
			id, c.More, st.derived = l.derivedID(c), false, true
		}
		st.header.SourceID = id
		var err error
		if st.again, err = l.count(id); err != nil {
			return err
		}
		if err := l.beginAfresh(st); err != nil {
			return err
		}
	}
	if err := l.findCopied(st, c.Nodes); err != nil || st.lost {
		return err
	}
	leaves := leaveWay(c)
	known := l.given.of(c.Nodes)
	for nodes := range slices.Chunk(c.Nodes, loadedAtOnce) {
		if err := context.Cause(l.ctx); err != nil {
			return err
		}
		prepared, err := l.prepare(st, nodes, leaves[:min(len(nodes), len(leaves))])
		if err != nil {
			return err
		}
		for i := range prepared {
			p := &prepared[i]
			if i < len(known) && !known[i].IsZero() {
				if err := l.knowSpan(st, p, known[i]); err != nil {
					return err
				}
				continue
			}
			if p.Aside != lineage.AsideLog {
				l.report.Messages++
			}
			if err := l.place(st, p); err != nil {
				return err
			}
			if st.lost {
				return nil
			}
			if l.keep {
				l.placed = append(l.placed, item{st, p})
			}
		}
		known, leaves = known[min(len(nodes), len(known)):], leaves[min(len(nodes), len(leaves)):]
	}
	if !c.More && !(st.derived && l.inFile == 1) { // its title depends on whether another one follows
		return l.finishOpen()
	}
	return nil
}

// loadedAtOnce is the number of messages prepared at a time.
const loadedAtOnce = 512

// count counts a conversation, unless it was counted before, which it reports.
func (l *loader) count(sourceID string) (again bool, err error) {
	l.files.has(l.of, sourceID)
	k := shortHash(sourceID)
	if again = l.met[k] != 0; !again {
		if most := l.options.Limits.OrDefault().Conversations; l.report.Conversations >= most {
			l.open = nil
			return false, &archive.LimitError{Limit: "conversations", Most: most, What: "conversations", Err: archive.ErrTooLarge}
		}
		l.report.Conversations++
	}
	l.met[k] = l.number
	return again, nil
}

// merge adopts the non-zero fields of a part.
func merge(c, part *archive.Conversation) {
	set := func(old *string, is string) {
		if is != "" {
			*old = is
		}
	}
	set(&c.Title, part.Title)
	set(&c.UserID, part.UserID)
	set(&c.Model, part.Model)
	set(&c.Current, part.Current)
	set(&c.ForkedFrom, part.ForkedFrom)
	c.SharedIDs, c.Copies = c.SharedIDs || part.SharedIDs, c.Copies || part.Copies
	if !part.Created.IsZero() {
		c.Created = part.Created
	}
	if part.Updated.After(c.Updated) {
		c.Updated = part.Updated
	}
	if part.Metadata != nil {
		c.Metadata = part.Metadata
	}
	c.Empty = append(c.Empty, part.Empty...)
}
