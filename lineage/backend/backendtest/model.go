package backendtest

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Model is the expected content of a store. It consists of maps that are copied for
// each commit, so that a refused one leaves nothing behind.
type Model struct {
	number      uint64
	feed        []structure.Commit
	threads     map[structure.ThreadID]structure.Thread
	views       map[structure.ContextID]backend.Context
	remnants    map[structure.ContextID]structure.Remnant
	stated      []structure.ContextID // remnants, by the current commit
	branches    map[named]structure.Branch
	checkpoints map[named]structure.Checkpoint
	runs        map[structure.RunID]structure.Run
	ends        map[structure.RunID]uint64
	closed      map[structure.RunID]bool // a collection removed their ends
	spans       map[structure.SpanRef]Placed
	sets        map[structure.SpanSetID]structure.SpanSet
	lookups     map[lookup]structure.SpanRef
	blocks      map[content.ID]structure.Block
	erased      map[content.ID]bool
	chunks      map[content.Key]string
	named       map[structure.ValueKey][]backend.Value // oldest first

	// In insertion order.
	order     []structure.SpanRef
	summaries []structure.Summary
	reflog    []structure.Reflog
	logical   uint64
}

type named struct {
	thread structure.ThreadID
	name   string
}

// Placed is a span and the commit that added it.
type Placed struct {
	Span   structure.Span
	Commit uint64
}

// NewModel returns a model of an empty store.
func NewModel() *Model {
	return &Model{
		threads: map[structure.ThreadID]structure.Thread{}, views: map[structure.ContextID]backend.Context{}, remnants: map[structure.ContextID]structure.Remnant{},
		branches: map[named]structure.Branch{}, checkpoints: map[named]structure.Checkpoint{},
		runs: map[structure.RunID]structure.Run{}, ends: map[structure.RunID]uint64{}, closed: map[structure.RunID]bool{},
		spans: map[structure.SpanRef]Placed{}, sets: map[structure.SpanSetID]structure.SpanSet{},
		lookups: map[lookup]structure.SpanRef{}, blocks: map[content.ID]structure.Block{},
		erased: map[content.ID]bool{}, chunks: map[content.Key]string{},
		named: map[structure.ValueKey][]backend.Value{},
	}
}

func (m *Model) clone() *Model {
	c := *m
	c.feed = slices.Clip(m.feed)
	c.threads, c.views, c.remnants = maps.Clone(m.threads), maps.Clone(m.views), maps.Clone(m.remnants)
	c.stated = slices.Clip(m.stated)
	c.branches, c.checkpoints = maps.Clone(m.branches), maps.Clone(m.checkpoints)
	c.runs, c.ends, c.closed, c.spans = maps.Clone(m.runs), maps.Clone(m.ends), maps.Clone(m.closed), maps.Clone(m.spans)
	c.sets, c.lookups = maps.Clone(m.sets), maps.Clone(m.lookups)
	c.blocks, c.erased, c.chunks = maps.Clone(m.blocks), maps.Clone(m.erased), maps.Clone(m.chunks)
	c.named = maps.Clone(m.named)
	c.order, c.summaries, c.reflog = slices.Clip(m.order), slices.Clone(m.summaries), slices.Clone(m.reflog)
	return &c
}

// ModelOf returns a model with commits, which must be valid.
func ModelOf(t require.TestingT, commits ...*structure.Commit) *Model {
	m := NewModel()
	for _, c := range commits {
		m.Apply(t, c)
	}
	return m
}

// Apply applies a commit, which must be valid.
func (m *Model) Apply(t require.TestingT, c *structure.Commit) {
	_, err := m.apply(c, backend.Options{})
	require.NoError(t, err)
}

// Clone returns an independent copy.
func (m *Model) Clone() *Model { return m.clone() }

// Number returns the number of the last commit.
func (m *Model) Number() uint64 { return m.number }

// Has reports whether a block exists and is not erased.
func (m *Model) Has(id content.ID) bool { return m.has(id) }

// Block returns a block that exists and is not erased.
func (m *Model) Block(id content.ID) (structure.Block, bool) { return m.blocks[id], m.has(id) }

// HasContext reports whether a context exists.
func (m *Model) HasContext(id structure.ContextID) bool { return needKey(m.views, id) == nil }

// Remnants returns the number of remnants.
func (m *Model) Remnants() int { return len(m.remnants) }

// Spans yields the spans in insertion order.
func (m *Model) Spans() iter.Seq2[structure.SpanRef, Placed] {
	return func(yield func(structure.SpanRef, Placed) bool) {
		for _, ref := range m.order {
			if !yield(ref, m.spans[ref]) {
				return
			}
		}
	}
}

// Feed returns the commits as the feed yields them, without the effect of collections.
func (m *Model) Feed() []structure.Commit { return m.feedFrom(0) }

// outcome is the expected content of a receipt. Content that occurs repeatedly in
// the commit itself may be reported as known, or not.
type outcome struct {
	number         uint64
	known          []content.ID
	repeated       []content.ID
	knownChunks    int
	repeatedChunks int
}

func (o outcome) repeatedly() []content.ID { return append(slices.Clone(o.known), o.repeated...) }

// apply applies a commit, or returns the error that an engine must return.
func (m *Model) apply(c *structure.Commit, o backend.Options) (outcome, error) {
	next := m.clone()
	next.number++
	next.stated = nil
	out := outcome{number: next.number}
	if len(c.Records) == 0 {
		return out, backend.ErrInvalid
	}
	for _, expect := range o.Tips {
		if v, ok := m.views[expect.Context]; !ok {
			return out, backend.ErrNotFound
		} else if v.Tip != expect.Tip {
			return out, &backend.TipError{Context: expect.Context, Expected: expect.Tip, Actual: v.Tip}
		}
	}
	for _, expect := range o.Threads {
		got, ok := m.threads[expect.ID]
		switch {
		case ok && expect.Was == nil:
			return out, backend.ErrExists
		case expect.Was != nil && (!ok || !equalFacts(got, *expect.Was)):
			return out, backend.ErrConflict
		}
	}
	for _, expect := range o.Contexts {
		got, ok := m.views[expect.ID]
		switch {
		case ok && expect.Was == nil:
			return out, backend.ErrExists
		case expect.Was != nil && (!ok || !equalFacts(got.Context, *expect.Was)):
			return out, backend.ErrConflict
		}
	}
	if err := first(m.expectedNames(o), m.expectedValues(o), m.expectedSources(o)); err != nil {
		return out, err
	}
	applied := structure.Commit{Number: next.number, Time: c.Time}
	offered := next.clone().offered(c, m)
	for _, r := range c.Records {
		known, err := next.content(r, m, &out)
		if err == nil && !known {
			if b, ok := r.(*structure.Block); ok {
				delete(offered, b.ID)
			}
			r = credited(r, offered)
			applied.Records = append(applied.Records, r)
			err = next.record(c, r)
		}
		if err != nil {
			return out, fmt.Errorf("%T: %w", r, err)
		}
	}
	if err := next.requireUsed(); err != nil {
		return out, err
	}
	if len(applied.Records) == 0 {
		out.number = m.number
		return out, nil
	}
	next.feed = append(next.feed, applied)
	*m = *next
	return out, nil
}

// offered returns the blocks of a commit that are not stored because they
// exist already.
func (m *Model) offered(c *structure.Commit, before *Model) map[content.ID]*structure.Block {
	out := map[content.ID]*structure.Block{}
	for _, r := range c.Records {
		known, err := m.content(r, before, &outcome{})
		if b, ok := r.(*structure.Block); ok && known && err == nil && out[b.ID] == nil {
			out[b.ID] = b
		}
		if d, ok := r.(*structure.Deletion); ok && d.Subject == structure.KindBlock {
			m.erased[d.Content] = true
		}
	}
	return out
}

// credited returns a record whose usages have the metadata of the offered blocks where
// the usage itself has none.
func credited(r structure.Record, offered map[content.ID]*structure.Block) structure.Record {
	s, ok := r.(*structure.Span)
	if !ok {
		return r
	}
	own := *s
	own.Usages = slices.Clone(s.Usages)
	for i := range own.Usages {
		u := &own.Usages[i]
		b := offered[u.Content]
		if b == nil {
			continue
		}
		if u.Type == "" {
			u.Type = b.Type
		}
		if u.Origin == nil {
			u.Origin = new(b.Origin)
		}
	}
	return &own
}

// content adds a block or chunk and reports whether it existed.
func (m *Model) content(r structure.Record, before *Model, out *outcome) (known bool, err error) {
	switch r := r.(type) {
	case *structure.Block:
		if r.Tree.IsZero() && (content.Sum(r.Body) != r.ID || r.Size != int64(len(r.Body))) ||
			!r.Tree.IsZero() && (r.Body != nil || r.Size != r.Tree.Size) {
			return false, backend.ErrInvalid
		}
		if m.has(r.ID) {
			if before.has(r.ID) {
				out.known = append(out.known, r.ID)
			} else {
				out.repeated = append(out.repeated, r.ID)
			}
			return true, nil
		}
		if _, ok := m.chunks[r.Tree.Key]; !ok && !r.Tree.IsZero() {
			return false, backend.ErrNotFound
		}
		delete(m.erased, r.ID)
		m.blocks[r.ID] = plain(*r)
	case *structure.Chunk:
		if content.KeyOf(r.Bytes) != r.Key {
			return false, backend.ErrInvalid
		}
		if _, ok := m.chunks[r.Key]; ok {
			if _, ok := before.chunks[r.Key]; ok {
				out.knownChunks++
			} else {
				out.repeatedChunks++
			}
			return true, nil
		}
		m.chunks[r.Key] = string(r.Bytes)
	}
	return false, nil
}

func (m *Model) has(id content.ID) bool {
	_, ok := m.blocks[id]
	return ok && !m.erased[id]
}

// record applies a record of any other kind.
func (m *Model) record(c *structure.Commit, r structure.Record) error {
	switch r := r.(type) {
	case nil:
		return backend.ErrInvalid
	case *structure.Thread:
		return m.thread(r)
	case *structure.Context:
		return m.view(c, r)
	case *structure.Tip:
		return m.tip(c, r)
	case *structure.Run:
		return m.run(r)
	case *structure.Span:
		return m.span(r)
	case *structure.SpanSet:
		return m.set(r)
	case *structure.Branch:
		return m.branch(r)
	case *structure.Checkpoint:
		return m.checkpoint(r)
	case *structure.Summary:
		return m.summary(r)
	case *structure.Reflog:
		if err := m.need(r.From, r.To); err != nil {
			return err
		}
		m.reflog = append(m.reflog, *r)
		return needKey(m.views, r.Context)
	case *structure.Deletion:
		return m.deletion(r)
	case *structure.Value:
		return m.value(r)
	case *structure.Remnant:
		return m.remnant(r)
	}
	return nil
}

// needKey returns ErrNotFound if a key is missing.
func needKey[K comparable, V any](there map[K]V, key K) error {
	if _, ok := there[key]; !ok {
		return backend.ErrNotFound
	}
	return nil
}

// optional is needKey, except that a zero key is valid.
func optional[K comparable, V any](there map[K]V, key K) error {
	var none K
	if key == none {
		return nil
	}
	return needKey(there, key)
}

// need returns an error if one of the positions does not exist.
func (m *Model) need(refs ...structure.SpanRef) error {
	for _, ref := range refs {
		if ref.Seq == 0 && !ref.IsZero() {
			return backend.ErrInvalid
		}
		if err := optional(m.spans, ref); err != nil {
			return err
		}
	}
	return nil
}

// deepCopy returns a model that shares no memory with the applied records.
func (m *Model) deepCopy() *Model {
	again := NewModel()
	for _, c := range m.feed {
		copied := structure.Commit{Time: c.Time}
		payload, _, err := new(structure.Encoder).Encode(&c)
		if err == nil {
			var decoded *structure.Commit
			if decoded, err = structure.DecodeCommit(bytes.Clone(payload)); err == nil {
				copied.Records = decoded.Records
			}
		}
		if err == nil {
			_, err = again.apply(&copied, backend.Options{})
		}
		if err != nil {
			return nil
		}
	}
	return again
}
