package importer

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/structure"
)

func newLoader(ctx context.Context, store *lineage.Store, o Options) *loader {
	writer := write.Of(store)
	l := &loader{
		ctx: ctx, writer: writer, engine: writer.Engine(), options: o,
		number: 1, met: make(map[uint64]uint32), copies: make(map[uint64]uint64), outlines: o.Outlines,
	}
	if l.outlines == nil {
		l.outlines = NewOutlines()
	}
	l.next = l.newDraft()
	return l
}

// all loads all events.
func (l *loader) all(events iter.Seq[archive.Event]) error {
	for e := range events {
		switch {
		case e.Conversation != nil:
			l.read, l.source = e.Read, e.File
			if len(e.Conversation.Skipped) > 0 {
				l.files.leftOut(e.File)
			}
			err := l.conversation(e.Conversation)
			if limit := (*archive.LimitError)(nil); errors.As(err, &limit) {
				return errors.Join(err, l.flush(), l.sync()) // keep what was read before the error
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

// complete finishes the open conversation and commits everything.
func (l *loader) complete() error {
	if err := l.finishOpen(); err != nil {
		return err
	}
	if err := l.flush(); err != nil {
		return err
	}
	// The current commit may be empty and still count messages that are shared.
	l.total.shared += l.next.added.shared
	l.next.added.shared = 0
	return nil
}

// close completes the report. It counts only what is in the store.
func (l *loader) close() {
	l.next.forget()
	l.report.NewConversations, l.report.NewMessages = l.total.conversations, l.total.messages
	l.report.SharedMessages, l.report.NewBytes = l.total.shared, l.total.bytes
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

// conversation loads a conversation, or a part of one.
func (l *loader) conversation(c *archive.Conversation) error {
	l.report.damages(c)
	st, err := l.continued(c)
	if err != nil || st.leftOut {
		return err
	}
	if err := l.refuseNamesake(st, c.Nodes); err != nil || st.leftOut {
		return err
	}
	if err := l.findCopied(st, c.Nodes); err != nil || st.leftOut {
		return err
	}
	for nodes := range c.Parts() {
		if err := l.nodes(st, nodes); err != nil || st.leftOut {
			return err
		}
		l.next.retainPart(nodes)
	}
	l.next.retainRest(st, c)
	if !c.More && !(st.derived && l.inFile == 1) { // its title depends on whether another one follows
		return l.finishOpen()
	}
	return nil
}

// continued returns the conversation that a part continues, or starts a new one.
func (l *loader) continued(c *archive.Conversation) (*loading, error) {
	st := l.open
	if st == nil || st.derived || st.header.SourceID != l.options.Prefix+c.SourceID {
		l.inFile++
		if err := l.finishOpen(); err != nil {
			return nil, err
		}
		st = &loading{asides: []string{""}, asideOf: map[string]int32{"": 0}, last: []int32{-1}, runs: make([]structure.RunID, 1)}
		l.open = st
	}
	merge(&st.header, c)
	if st.leftOut || st.thread != nil {
		return st, nil
	}
	if l.next.empty() {
		l.next.reset() // the source may have been slow
	}
	id := l.options.Prefix + c.SourceID
	if c.SourceID == "" {
		id, c.More, st.derived = l.derivedID(c), false, true
	}
	st.header.SourceID = id
	var err error
	if st.again, err = l.count(id); err != nil {
		return nil, err
	}
	return st, l.beginAfresh(st)
}

// nodes loads nodes.
func (l *loader) nodes(st *loading, all []archive.Node) error {
	known := l.given.spansOf(all)
	putInOrder(all, known)
	leaves := leavePath(all, st.header.Current)
	for nodes := range slices.Chunk(all, loadedAtOnce) {
		if err := context.Cause(l.ctx); err != nil {
			return err
		}
		prepared, err := l.prepare(st, nodes, leaves[:min(len(nodes), len(leaves))])
		if err != nil {
			return err
		}
		for i := range prepared {
			if i < len(known) && !known[i].IsZero() {
				err = l.knowSpan(st, &prepared[i], known[i])
			} else {
				err = l.node(st, &prepared[i])
			}
			if err != nil || st.leftOut {
				return err
			}
		}
		known, leaves = known[min(len(nodes), len(known)):], leaves[min(len(nodes), len(leaves)):]
	}
	return nil
}

// node loads a node.
func (l *loader) node(st *loading, p *prepared) error {
	if p.Aside != lineage.AsideLog {
		l.report.Messages++
	}
	err := l.place(st, p)
	if l.keep && err == nil && !st.leftOut {
		l.placed = append(l.placed, item{st, p})
	}
	return err
}

// count counts a conversation. It reports whether the conversation was counted before.
func (l *loader) count(sourceID string) (again bool, err error) {
	l.files.has(l.source, sourceID)
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

// merge copies the non-zero fields of a part.
func merge(c, part *archive.Conversation) {
	set := func(old *string, stated string) {
		if stated != "" {
			*old = stated
		}
	}
	set(&c.Title, part.Title)
	set(&c.UserID, part.UserID)
	set(&c.Model, part.Model)
	set(&c.Current, part.Current)
	set(&c.ForkedFrom, part.ForkedFrom)
	if part.Continues != nil {
		c.Continues = part.Continues
	}
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

// beginAfresh looks up the thread of a conversation after everything that may affect it was committed.
func (l *loader) beginAfresh(st *loading) error {
	if l.next.threads[st.threadID()] || st.header.ForkedFrom != "" && l.next.threads[l.threadOf(st.header.ForkedFrom)] {
		if err := l.flush(); err != nil {
			return err
		}
	}
	st.format, st.bare = l.format, l.bare
	return l.begin(st)
}
