package archive

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
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
	number uint32 // of the file
	inFile int    // conversations in the file so far
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
func (l *loader) all(events iter.Seq[event], b *budget) error {
	for e := range events {
		switch {
		case e.conversation != nil:
			l.read, l.part, l.partIn = e.read, e.size, nil
			err := l.conversation(e.conversation)
			b.give(e.size)
			if limit := (*LimitError)(nil); errors.As(err, &limit) {
				return errors.Join(err, l.flush(), l.sync()) // keep what was read before
			}
			if err != nil {
				return err
			}
			l.progress(false)
		case e.format != "":
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
func (l *loader) repair(d *Damage) {
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
	header Conversation // without nodes
	// derived is set if the source id is derived from the whole content of the conversation, so
	// that an equal id means equal content.
	derived bool
	// again is set if the archive had an earlier part of the conversation. Without a Current, that
	// part determines the current node.
	again bool
	// sought is set after the conversation that it was copied from was looked for.
	sought bool
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

type namedHead struct {
	node     int32
	name, of string
	metadata []byte
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

// prepared is a node ready to be stored.
type prepared struct {
	*Node
	place.Message
	index  int32 // in loading.nodes
	parent int32
}

// conversation loads a conversation, or a part of one.
func (l *loader) conversation(c *Conversation) error {
	c.clean()
	for _, d := range c.Repairs {
		l.report.repair(d)
	}
	for _, d := range c.Skipped {
		l.report.skip(d)
	}
	l.report.RepairedCount += c.repairedMore
	l.report.SkippedCount += c.skippedMore
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
	st.header.merge(c)
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
	c.leaveWay()
	known := l.given.of(c.Nodes)
	for nodes := range slices.Chunk(c.Nodes, loadedAtOnce) {
		if err := context.Cause(l.ctx); err != nil {
			return err
		}
		prepared, err := l.prepare(st, nodes)
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
			if p.Aside != asideLog {
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
		known = known[min(len(nodes), len(known)):]
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
	k := shortHash(sourceID)
	if again = l.met[k] != 0; !again {
		if most := l.options.Limits.orDefault().Conversations; l.report.Conversations >= most {
			l.open = nil
			return false, &LimitError{Limit: "conversations", Most: most, What: "conversations", Err: ErrTooLarge}
		}
		l.report.Conversations++
	}
	l.met[k] = l.number
	return again, nil
}

// shortHash returns a hash that is unique among the strings of an import.
func shortHash(s string) uint64 {
	sum := sha256.Sum256([]byte(s))
	return binary.BigEndian.Uint64(sum[:])
}

// merge adopts the non-zero fields of a part.
func (c *Conversation) merge(part *Conversation) {
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
	c.SharedIDs = c.SharedIDs || part.SharedIDs
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

// derivedID returns the source id of a conversation without one. It is a hash of its whole content
// and of the number of equal ones before it in the file. It is short, because it cannot be
// compressed, but unique among a billion conversations.
func (l *loader) derivedID(c *Conversation) string {
	h := &l.hash
	h.buf = h.buf[:0]
	for _, s := range [...]string{l.format, c.Title, c.UserID, c.Model, c.Current, c.ForkedFrom} {
		h.buf.Text(s)
	}
	h.buf.Time(c.Created)
	h.buf.Time(c.Updated)
	h.buf.Bytes(c.Metadata)
	sum := sha256.New()
	for i := range c.Nodes {
		n := &c.Nodes[i]
		for _, s := range [...]string{n.ID, n.Parent, n.Role, n.Name, n.Type, n.Model, n.UserID, n.Branch, n.Aside} {
			h.buf.Text(s)
		}
		if n.Root {
			h.buf.Number(1)
		}
		h.buf.Time(n.Created)
		h.buf.Bytes(n.Metadata)
		h.buf.Bytes(n.Body)
		for k := range n.Attachments {
			a := &n.Attachments[k]
			h.buf.Text(a.Filename)
			h.buf.Text(a.Type)
			h.buf.Bytes(a.Body)
		}
		h.buf.Number(int64(len(n.Attachments)))
		sum.Write(h.buf)
		h.buf = h.buf[:0]
	}
	sum.Write(h.buf)
	id := derivedPrefix + hex.EncodeToString(sum.Sum(nil)[:10])
	k := shortHash(l.options.Prefix + id)
	if l.met[k] != l.number {
		return l.options.Prefix + id
	}
	l.copies[k]++
	h.buf = h.buf[:0]
	h.buf.Text(id)
	h.buf.Number(int64(l.copies[k]))
	another := sha256.Sum256(h.buf)
	return l.options.Prefix + derivedPrefix + hex.EncodeToString(another[:10])
}

const derivedPrefix = "sha256:"

// prepare creates the usages of nodes, finds their parents, and appends the nodes to st.nodes, not
// yet placed.
func (l *loader) prepare(st *loading, nodes []Node) ([]prepared, error) {
	// A few large allocations are cheaper than many small ones.
	out := make([]prepared, len(nodes))
	most := len(nodes)
	for i := range nodes {
		most += len(nodes[i].Attachments)
	}
	usages, contents, origins := make([]structure.Usage, most), make([]place.Content, most), make([]content.BlockOrigin, most)
	st.nodes = slices.Grow(st.nodes, len(nodes))
	for i := range nodes {
		n, p := &nodes[i], &out[i]
		p.Node = n
		parts := 1 + len(n.Attachments)
		p.Usages, usages = usages[:parts:parts], usages[parts:]
		p.Contents, contents = contents[:0:parts], contents[parts:]
		for k := range p.Usages {
			p.Usages[k].Origin = &origins[k]
		}
		origins = origins[parts:]
		aside := st.aside(n.Aside)
		var err error
		if p.parent, err = l.parentOf(st, n, aside); err != nil {
			return nil, err
		}
		p.index, p.Apart = int32(len(st.nodes)), n.leavesWay
		if n.Role == "" {
			n.Role = "unknown"
		}
		if err := l.usages(st.thread, p); err != nil {
			return nil, err
		}
		mark := uint32(0)
		if n.ID == "" && p.parent >= 0 {
			mark = st.nodes[p.parent].mark
		}
		mark = l.hash.mark(mark, p.Usages)
		if p.parent >= 0 {
			if parent := &st.nodes[p.parent]; parent.aside == aside && !parent.kids {
				parent.kids = true
				at, _ := slices.BinarySearch(st.leaves, p.parent)
				st.leaves = slices.Delete(st.leaves, at, at+1)
			}
		}
		if n.ID != "" {
			if st.byID == nil {
				st.byID = make(map[string]int32, len(nodes))
			}
			if _, taken := st.byID[n.ID]; !taken {
				st.byID[n.ID], p.Message.ID = p.index, n.ID
			}
		}
		if n.Branch != "" {
			st.named = append(st.named, namedHead{p.index, n.Branch, n.BranchOf, n.BranchMetadata})
		}
		st.nodes = append(st.nodes, loaded{parent: p.parent, aside: aside, mark: mark, created: n.Created})
		st.last[aside] = p.index
		st.leaves = append(st.leaves, p.index)
	}
	return out, nil
}

// place returns the node's position for a report.
func (n *Node) place(inside string) Position {
	at := n.At
	at.Inside = inside
	return at
}

func (st *loading) aside(name string) int32 {
	if i, known := st.asideOf[name]; known {
		return i
	}
	i := int32(len(st.asides))
	st.asides, st.asideOf[name] = append(st.asides, name), i
	st.last = append(st.last, -1)
	return i
}

// parentOf returns the parent of a node, -1 for none.
func (l *loader) parentOf(st *loading, n *Node, aside int32) (int32, error) {
	switch {
	case n.Root:
		return -1, nil
	case n.Parent != "":
		if parent, ok := st.byID[n.Parent]; ok {
			return parent, nil
		}
		if n.Parent != n.ID {
			if parent, err := l.adopt(st, n.Parent); err != nil || parent >= 0 {
				return parent, err
			}
		}
		how := "it begins a history"
		if st.last[aside] >= 0 {
			how = "it is put after the message before it"
		}
		l.report.repair(damaged(n.place("message "+n.ID), malformed("its parent %q is missing; %s", n.Parent, how)))
	}
	return st.last[aside], nil
}

// adopt adds a node for an existing message of the thread, -1 if the thread has none with the id.
func (l *loader) adopt(st *loading, id string) (int32, error) {
	if st.thread == nil || !st.thread.committed {
		return -1, nil
	}
	state, err := l.state()
	if err != nil {
		return -1, err
	}
	found, err := backend.FindFirst(l.ctx, state, id, st.thread.record.ID)
	if errors.Is(err, lineage.ErrNotFound) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	index := int32(len(st.nodes))
	st.nodes = append(st.nodes, loaded{ref: found.Span, parent: -1, stored: true, kids: true, adopted: true})
	if st.byID == nil {
		st.byID = make(map[string]int32)
	}
	st.byID[id] = index
	return index, nil
}

// usages creates the usages of a node. Each states its type and origin: a block, which others may
// have stored before, states only a kind of origin.
func (l *loader) usages(t *threadState, p *prepared) error {
	n := p.Node
	if n.Type == "" {
		n.Type = typeText
	}
	created := n.Created
	if created.IsZero() {
		created = t.record.CreatedAt
	}
	origin := content.Origin{Kind: content.OriginOfRole(n.Role), UserID: n.UserID, ModelID: n.Model}
	own := p.Usages
	head := structure.Usage{
		Kind: structure.MessageUsage, Role: n.Role, Type: n.Type, By: origin.Attribution(), Origin: own[0].Origin,
		SourceID: n.ID, Metadata: n.Metadata, CreatedAt: created,
	}
	*head.Origin = origin.OfBlock()
	if n.Name != n.Role {
		head.Name = n.Name
	}
	said, err := write.Message(own[:0:1], head, n.Type, n.Body, p.Store)
	if err != nil {
		return err
	}
	origin.ModelID = ""
	for i := range n.Attachments {
		a, u := &n.Attachments[i], &own[i+1]
		if a.Type == "" {
			a.Type = content.TypeBinary
		}
		if a.Filename == "" {
			a.Filename = "attachment"
		}
		*u = structure.Usage{Kind: structure.AssetUsage, Filename: a.Filename, Type: a.Type, By: origin.Attribution(), Origin: u.Origin, CreatedAt: created}
		*u.Origin = origin.OfBlock()
		if u.Content, err = p.Store(a.Type, origin.Kind, a.Body); err != nil {
			return err
		}
	}
	if said[0].Opaque {
		l.report.Opaque++
	}
	if n.Converted {
		l.report.Converted++
	}
	if len(said) > 1 {
		p.Usages = append(said, own[1:]...)
	}
	return nil
}
