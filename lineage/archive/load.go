package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// loader turns conversations into commits.
type loader struct {
	ctx      context.Context
	store    *lineage.Store
	engine   backend.Engine
	options  *Options
	find     finder
	prefixes *prefixes
	commits  *committer
	next     *pending
	// touched are the threads that commits under way concern.
	touched map[structure.ThreadID]bool
	// grown are runs of the store that were gone on with, each by one thread: several
	// may share its end, and commits under way cannot be seen in the store.
	grown map[structure.RunID]bool
	// fresh says that the store had no thread when the import began.
	fresh bool
	seen
	tick   int
	serial uint32 // of the conversation begun last
	made   int64  // messages that the store did not have

	open *loading // the conversation that is to be continued
	// Memory that is used again for the next conversation.
	prepared []prepared
	nodes    []loaded
}

func newLoader(ctx context.Context, store *lineage.Store, o *Options) *loader {
	engine := store.Engine()
	return &loader{
		ctx: ctx, store: store, engine: engine, options: o, find: finder{ctx, engine}, prefixes: newPrefixes(),
		commits: newCommitter(ctx, store), next: newPending(), touched: make(map[structure.ThreadID]bool),
		grown: make(map[structure.RunID]bool),
	}
}

// all loads what was read.
func (l *loader) all(events iter.Seq[event], b *budget) error {
	head, err := l.engine.Head(l.ctx)
	if err != nil {
		return err
	}
	l.fresh = head == 0
	for e := range events {
		switch {
		case e.conversation != nil:
			l.read = e.read
			err := l.conversation(e.conversation)
			b.give(e.size)
			if err != nil {
				return err
			}
			l.progress(false)
		case e.format != "":
			if err := l.finishOpen(); err != nil {
				return err
			}
			l.take(e)
		default:
			l.take(e)
		}
	}
	if err := l.finishOpen(); err != nil {
		return err
	}
	if err := l.flush(); err != nil {
		return err
	}
	if err := l.commits.sync(); err != nil {
		return err
	}
	// Conversations that share messages may have had nothing to add.
	l.commits.added.shared += l.next.added.shared
	l.progress(true)
	return nil
}

// close waits for the commits under way. Thereafter the report says what is in the
// store: what was made for a commit that failed, or that was not begun, is not there.
func (l *loader) close() error {
	err := l.commits.close()
	is := l.commits.added
	l.report.NewConversations, l.report.NewMessages = is.conversations, is.messages
	l.report.SharedMessages, l.report.NewBytes = is.shared, is.bytes
	return err
}

func (l *loader) progress(last bool) {
	if l.options.Progress == nil {
		return
	}
	if l.tick++; last || l.tick%256 == 0 {
		l.options.Progress(Progress{
			Read: l.read, File: l.file, Conversations: l.report.Conversations, Messages: l.report.Messages, NewMessages: l.made,
		})
	}
}

// flush sends the commit at hand on its way.
func (l *loader) flush() error {
	if len(l.next.records) == 0 {
		return context.Cause(l.ctx)
	}
	p := l.next
	l.next = newPending()
	l.next.records = make([]structure.Record, 0, min(len(p.records)+16, commitRecords+64))
	return l.commits.send(p)
}

// settle waits until all that was loaded is in the store, for reading it.
func (l *loader) settle() error {
	if err := l.flush(); err != nil {
		return err
	}
	clear(l.touched)
	return l.commits.wait()
}

// loading is a conversation while it is being loaded.
type loading struct {
	number uint32
	header Conversation // what is said of it, without nodes
	// derived is set when the source id is made of the metadata and the messages: they
	// are the same when it comes again.
	derived bool
	thread  *threadState
	nodes   []loaded
	byID    map[string]int32
	asides  []string // names; 0 is the conversation proper
	// named are the nodes that branches were named for.
	named []namedHead
	last  []int32 // the last node of each aside, -1 for none
	// held is the first node of a history while it is open whether it shares
	// another thread's: see loader.place.
	held *held
	// roots are where histories of the conversation begin.
	roots map[digestKey]place
	// originals describes nodes that share a span which has other ids, times or
	// metadata.
	originals []byte
}

type namedHead struct {
	node int32
	name string
}

// loaded is what is kept of a node.
type loaded struct {
	ref    structure.SpanRef
	digest structure.Digest
	parent int32
	aside  int32
	kids   bool // it has children in this archive
	inner  bool // a history of the thread goes on from it
	// stored says that the span was in the store before; foreign, that it is another
	// thread's.
	stored, foreign bool
	adopted         bool // it is not of this archive
	created         time.Time
}

// prepared is a node that is ready to be stored.
type prepared struct {
	*Node
	usages []structure.Usage
	blocks []*structure.Block // nil where a body has to be cut
	span   *structure.Span
	digest structure.Digest
	index  int32 // in loading.nodes
	parent int32
	aside  int32
	own    identity
	bytes  int
}

type held struct {
	prepared
	at   place
	node int32
}

// conversation loads a conversation, or a part of one.
func (l *loader) conversation(c *Conversation) error {
	c.clean()
	if c.SourceID != "" {
		c.SourceID = l.options.Prefix + c.SourceID
	}
	for _, d := range c.Repairs {
		l.report.repair(d)
	}
	for _, d := range c.Skipped {
		l.report.skip(d)
	}
	st := l.open
	if st != nil && st.header.SourceID != c.SourceID {
		if err := l.finishOpen(); err != nil {
			return err
		}
		st = nil
	}
	if st == nil {
		l.report.Conversations++
		l.serial++
		st = &loading{nodes: l.nodes[:0], number: l.serial, asides: []string{""}, last: []int32{-1}}
		l.open = st
	}
	st.header.merge(c)
	var err error
	if st.thread == nil && c.SourceID != "" {
		if st.thread, err = l.begin(st); err != nil {
			return err
		}
	}
	nodes, err := l.prepare(st, c.Nodes)
	if err != nil {
		return err
	}
	if st.thread == nil {
		st.header.SourceID, st.derived = l.options.Prefix+derivedID(l.format, &st.header, nodes), true
		c.More = false
		if st.thread, err = l.begin(st); err != nil {
			return err
		}
	}
	for i := range nodes {
		if err := l.place(st, &nodes[i], nodes[i].index); err != nil {
			return err
		}
	}
	if !c.More {
		return l.finishOpen()
	}
	return nil
}

// merge takes over what a part says.
func (c *Conversation) merge(part *Conversation) {
	c.SourceID = part.SourceID
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
	if !part.Created.IsZero() {
		c.Created = part.Created
	}
	if !part.Updated.IsZero() {
		c.Updated = part.Updated
	}
	if part.Metadata != nil {
		c.Metadata = part.Metadata
	}
}

// derivedID returns the source id of a conversation that has none: what it says. The
// id is random bytes to whoever packs it, so it is no longer than it takes to tell a
// billion conversations apart. Two of one id would be branches of one thread.
func derivedID(format string, c *Conversation, nodes []prepared) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q\n", format, c.Title, c.UserID, c.Metadata)
	for i := range nodes {
		h.Write(nodes[i].digest[:])
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)[:10])
}

// prepare hashes nodes and finds their parents. It appends them to st.nodes, where
// they have no place yet.
func (l *loader) prepare(st *loading, nodes []Node) ([]prepared, error) {
	l.prepared = slices.Grow(l.prepared[:0], len(nodes))[:len(nodes)]
	out := l.prepared
	clear(out)
	// Few large pieces of memory are cheaper than many small ones.
	most := len(nodes)
	for i := range nodes {
		most += len(nodes[i].Attachments)
	}
	usages, blocks := make([]structure.Usage, most), make([]*structure.Block, most)
	spans := make([]structure.Span, len(nodes))
	st.nodes = slices.Grow(st.nodes, len(nodes))
	for i := range nodes {
		n, p := &nodes[i], &out[i]
		p.Node, p.span = n, &spans[i]
		parts := 1 + len(n.Attachments)
		p.usages, usages = usages[:parts:parts], usages[parts:]
		p.blocks, blocks = blocks[:parts:parts], blocks[parts:]
		p.aside = st.aside(n.Aside)
		var err error
		if p.parent, err = l.parentOf(st, n, p.aside); err != nil {
			return nil, err
		}
		p.index = int32(len(st.nodes))
		if n.Role == "" {
			n.Role = "unknown"
		}
		l.usages(p)
		var before structure.Digest
		if p.parent >= 0 {
			parent := &st.nodes[p.parent]
			before = parent.digest
			parent.kids = parent.kids || parent.aside == p.aside
		}
		p.digest = structure.NextDigest(before, p.usages)
		p.own = identityOf(n.ID, n.Created, n.Metadata)
		if n.ID != "" {
			if st.byID == nil {
				st.byID = make(map[string]int32, len(nodes))
			}
			if first, taken := st.byID[n.ID]; taken && st.nodes[first].digest != p.digest {
				l.report.repair(damaged(n.place("message "+n.ID), malformed("a second message of this id; it is kept without its id")))
			} else if !taken {
				st.byID[n.ID] = p.index
			}
		}
		if n.Branch != "" {
			st.named = append(st.named, namedHead{p.index, n.Branch})
		}
		st.nodes = append(st.nodes, loaded{digest: p.digest, parent: p.parent, aside: p.aside, created: n.Created})
		st.last[p.aside] = p.index
		if n.Aside != asideLog {
			l.report.Messages++
		}
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
	if i := slices.Index(st.asides, name); i >= 0 {
		return int32(i)
	}
	st.asides = append(st.asides, name)
	st.last = append(st.last, -1)
	return int32(len(st.asides) - 1)
}

// parentOf returns the node that a node follows, -1 for none.
func (l *loader) parentOf(st *loading, n *Node, aside int32) (int32, error) {
	switch {
	case n.Root:
		return -1, nil
	case n.Parent != "":
		if parent, ok := st.byID[n.Parent]; ok {
			return parent, nil
		}
		if parent, err := l.adopt(st, n.Parent); err != nil || parent >= 0 {
			return parent, err
		}
		how := "it begins a history"
		if st.last[aside] >= 0 {
			how = "it is put after the message before it"
		}
		l.report.repair(damaged(n.place("message "+n.ID), malformed("its parent %q is not there; %s", n.Parent, how)))
	}
	return st.last[aside], nil
}

// adopt makes a node of a message that the thread has from before, -1 if it has
// none of the id.
func (l *loader) adopt(st *loading, id string) (int32, error) {
	if st.thread == nil || !st.thread.existed {
		return -1, nil
	}
	ref, err := l.engine.Find(l.ctx, st.thread.alias(id))
	if errors.Is(err, lineage.ErrNotFound) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	digest, err := l.engine.Digest(l.ctx, ref)
	if err != nil {
		return -1, err
	}
	index := int32(len(st.nodes))
	at, _ := st.thread.owned(digest, identity{})
	st.nodes = append(st.nodes, loaded{ref: ref, digest: digest, parent: -1, stored: true, kids: true, adopted: true, inner: at.inner})
	if st.byID == nil {
		st.byID = make(map[string]int32)
	}
	st.byID[id] = index
	return index, nil
}

// usages makes what becomes of a node in its span.
func (l *loader) usages(p *prepared) {
	n := p.Node
	if n.Type == "" {
		n.Type = typeText
	}
	user := n.UserID
	if user == "" && n.Role == "user" {
		user = l.options.UserID
	}
	origin := content.Origin{Kind: content.OriginOfRole(n.Role), UserID: user, ModelID: n.Model}
	p.block(0, n.Type, origin, n.Body)
	u := &p.usages[0]
	u.Kind, u.Role, u.SourceID, u.Metadata = structure.MessageUsage, n.Role, strings.ToValidUTF8(n.ID, "\uFFFD"), n.Metadata
	if n.Name != n.Role {
		u.Name = n.Name
	}
	for i := range n.Attachments {
		a := &n.Attachments[i]
		if a.Type == "" {
			a.Type = content.TypeBinary
		}
		if a.Filename == "" {
			a.Filename = "attachment"
		}
		p.block(i+1, a.Type, content.Origin{Kind: content.OriginOfRole(n.Role), UserID: user}, a.Body)
		p.usages[i+1].Kind, p.usages[i+1].Filename = structure.AssetUsage, a.Filename
	}
	p.bytes += len(n.Metadata) + 64
}

// block sets the content of a usage. A body that is too large to be kept whole is
// only hashed; it is cut when it turns out to be new.
func (p *prepared) block(i int, mediaType string, origin content.Origin, body []byte) {
	p.bytes += len(body)
	if len(body) <= content.InlineLimit {
		p.blocks[i] = structure.NewBlock(mediaType, origin, p.Created, body)
		p.usages[i].Content = p.blocks[i].ID
		return
	}
	p.usages[i].Content = content.Sum(body)
	p.usages[i].Type = mediaType
	p.usages[i].Origin = &origin
}
