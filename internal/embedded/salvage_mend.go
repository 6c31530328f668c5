package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// mender brings commits into a store that lacks some of what came before them.
type mender struct {
	ctx     context.Context
	to      *Engine
	report  *SalvageReport
	at      time.Time          // of the commit that is brought
	records []structure.Record // of it
	note    *structure.Block
	// madeUp are the contexts of which only the id is known.
	madeUp map[structure.ContextID]bool
	// lost are the threads of which only the id is known, and homes the incarnations that
	// runs and values named last.
	lost  map[structure.ThreadID]bool
	homes map[structure.ThreadID]uint64
}

func newMender(ctx context.Context, to *Engine, report *SalvageReport) *mender {
	// That pieces of a body are stored is not said by the last of them any more.
	to.collected.Store(true)
	return &mender{
		ctx: ctx, to: to, report: report, madeUp: make(map[structure.ContextID]bool),
		lost: make(map[structure.ThreadID]bool), homes: make(map[structure.ThreadID]uint64),
	}
}

// mostHole is how many messages that follow each other are made up for. Damage does
// not take more, and a place that is far behind the end of its run is damage itself.
const mostHole = 1 << 20

// commit brings a commit: as it is, if what it needs is there, else record by record.
func (m *mender) commit(f journal.Frame) error {
	c, err := structure.DecodeCommit(f.Payload)
	if err != nil {
		return nil // written by a program that was wrong, for its checksum is right: it is missing
	}
	m.report.Commits++
	m.at, m.records = c.Time, c.Records
	if err := m.meet(); err != nil {
		return err
	}
	if err := m.forgetEarlier(); err != nil {
		return err
	}
	err = m.apply(c.Records...)
	if err == nil || !refused(err) {
		return err
	}
	for _, r := range c.Records {
		switch err := m.record(r); {
		case refused(err):
			m.report.Records++
		case err != nil:
			return err
		}
	}
	return nil
}

func (m *mender) apply(records ...structure.Record) error {
	_, err := m.to.Apply(m.ctx, &structure.Commit{Time: m.at, Records: records}, backend.Options{})
	return err
}

// refused reports whether an error is about what was to be applied.
func refused(err error) bool {
	for _, kind := range []error{backend.ErrNotFound, backend.ErrConflict, backend.ErrExists, backend.ErrInvalid, backend.ErrErased} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// record brings one record, and before it what it needs and is gone.
func (m *mender) record(r structure.Record) error {
	switch r := r.(type) {
	case *structure.Block:
		return m.block(r)
	case *structure.Thread:
		return m.thread(*r)
	case *structure.Context:
		return m.context(*r)
	case *structure.Tip:
		return m.needing(r, m.needContext(r.Context, structure.ThreadID{}), m.needSpan(r.Span))
	case *structure.Run:
		return m.needing(r, m.needSpan(r.Parent))
	case *structure.Span:
		return m.span(*r)
	case *structure.SpanSet:
		return m.needing(r, m.needSpan(r.Parent))
	case *structure.Branch:
		return m.branch(r)
	case *structure.Checkpoint:
		return m.checkpoint(r)
	case *structure.Summary:
		return m.needing(r, m.needContext(r.Context, structure.ThreadID{}), m.needContent(r.Content), m.needSpan(r.From), m.needSpan(r.To))
	case *structure.Reflog:
		return m.needing(r, m.needContext(r.Context, structure.ThreadID{}), m.needSpan(r.From), m.needSpan(r.To))
	case *structure.Value:
		return m.value(r)
	case *structure.Cut:
		return nil // nothing was added behind it, and spans of this store have ids of its own
	case *structure.Deletion:
		err := m.apply(r)
		if errors.Is(err, backend.ErrNotFound) {
			return nil // it is gone already
		}
		return err
	}
	return m.apply(r)
}

// needing applies a record once everything is there that it needs.
func (m *mender) needing(r structure.Record, needs ...error) error {
	if err := errors.Join(needs...); err != nil {
		return err
	}
	return m.apply(r)
}

// branch applies a branch. Others can have its name or its source id if their deletions
// are gone.
func (m *mender) branch(r *structure.Branch) error {
	err := m.needing(r, m.needThread(r.Thread), m.needContext(r.Context, r.Thread))
	if !errors.Is(err, backend.ErrExists) {
		return err
	}
	others := map[string]bool{}
	if is, err := m.to.Branch(m.ctx, r.Thread, r.Name); err == nil && is.Context != r.Context {
		others[is.Name] = true
	}
	for b, err := range m.to.BranchesBySource(m.ctx, r.SourceID, r.Thread) {
		if err != nil {
			return err
		}
		others[b.Name] = true
	}
	return m.insteadOf(structure.KindBranch, r.Thread, others, r)
}

// checkpoint is branch for checkpoints.
func (m *mender) checkpoint(r *structure.Checkpoint) error {
	err := m.needing(r, m.needThread(r.Thread), m.needSpan(r.Span))
	if !errors.Is(err, backend.ErrExists) {
		return err
	}
	others := map[string]bool{}
	if is, err := m.to.Checkpoint(m.ctx, r.Thread, r.Name); err == nil && is.ID != r.ID {
		others[is.Name] = true
	}
	for k, err := range m.to.CheckpointsBySource(m.ctx, r.SourceID, r.Thread) {
		if err != nil {
			return err
		}
		others[k.Name] = true
	}
	return m.insteadOf(structure.KindCheckpoint, r.Thread, others, r)
}

// insteadOf applies what has a name after it deleted others of its kind.
func (m *mender) insteadOf(kind structure.Kind, thread structure.ThreadID, others map[string]bool, r structure.Record) error {
	var records []structure.Record
	for name := range others {
		records = append(records, &structure.Deletion{Subject: kind, Thread: thread, Name: name, At: m.at})
	}
	return m.apply(append(records, r)...)
}

func (m *mender) block(b *structure.Block) error {
	err := m.apply(b)
	if !refused(err) {
		return err
	}
	if b.Gone() { // it was erased and collected
		return m.erased(b)
	}
	return m.needContent(b.ID) // pieces of it are gone
}

// erased states content of which only the description is left.
func (m *mender) erased(b *structure.Block) error {
	if known, err := m.known(b.ID); err != nil || known {
		return err
	}
	return m.apply(b, &structure.Deletion{Subject: structure.KindBlock, Content: b.ID, At: m.at})
}

// known reports whether there is content of an id, be it erased.
func (m *mender) known(id content.ID) (bool, error) {
	_, err := m.to.Blocks(m.ctx, []content.ID{id})
	switch {
	case errors.Is(err, backend.ErrNotFound):
		return false, nil
	case errors.Is(err, backend.ErrErased):
		return true, nil
	}
	return err == nil, err
}

// needContent has content there, erased if it is gone.
func (m *mender) needContent(id content.ID) error {
	known, err := m.known(id)
	if err != nil || known {
		return err
	}
	m.report.Contents++
	return m.erased(&structure.Block{Block: content.Block{ID: id, Size: 1, Origin: madeUp, CreatedAt: m.at}})
}

func (m *mender) thread(t structure.Thread) error {
	active := t.Active
	t.Active = structure.ContextID{}
	if err := m.apply(&t); err != nil || active.IsZero() {
		return err
	}
	t.Active = active
	return m.needing(&t, m.needContext(active, t.ID))
}

func (m *mender) needThread(id structure.ThreadID) error {
	if id.IsZero() {
		return nil
	}
	_, err := m.to.Thread(m.ctx, id)
	if errors.Is(err, backend.ErrNotFound) {
		m.report.Names++
		m.lost[id] = true
		return m.apply(&structure.Thread{ID: id, Incarnation: m.homes[id], CreatedAt: m.at, UpdatedAt: m.at})
	}
	return err
}

func (m *mender) context(c structure.Context) error {
	var err error
	if !c.Parent.IsZero() {
		if _, err = m.to.Context(m.ctx, c.Parent); errors.Is(err, backend.ErrNotFound) {
			c.Parent, err = structure.ContextID{}, nil
		}
	}
	if err != nil {
		return err
	}
	if c.Set, err = m.setIfThere(c.Set); err != nil {
		return err
	}
	if err := errors.Join(m.needThread(c.Thread), m.needSpan(c.Base), m.needSpan(c.Tip)); err != nil {
		return err
	}
	if !m.madeUp[c.ID] {
		return m.apply(&c)
	}
	records, err := m.instead(&c)
	if err != nil {
		return err
	}
	values, err := m.valuesOf(c.ID)
	if err != nil {
		return err
	}
	delete(m.madeUp, c.ID)
	m.report.Names--
	if err := m.apply(records...); err != nil {
		return err
	}
	for i := range values {
		if err := m.apply(&values[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// setIfThere returns the id of a span set, zero if that is gone.
func (m *mender) setIfThere(id structure.SpanSetID) (structure.SpanSetID, error) {
	if id.IsZero() {
		return id, nil
	}
	_, err := m.to.SpanSet(m.ctx, id)
	if errors.Is(err, backend.ErrNotFound) {
		return structure.SpanSetID{}, nil
	}
	return id, err
}

// instead returns what puts a context in the place of one that was made up, of which it
// keeps what was said of that.
func (m *mender) instead(c *structure.Context) ([]structure.Record, error) {
	was, err := m.to.Context(m.ctx, c.ID)
	if err != nil {
		return nil, err
	}
	var before, behind []structure.Record
	for b, err := range m.to.BranchesOf(m.ctx, was.Thread, c.ID) {
		if err != nil {
			return nil, err
		}
		before = append(before, &structure.Deletion{Subject: structure.KindBranch, Thread: b.Thread, Name: b.Name, At: m.at})
		behind = append(behind, b)
	}
	for r, err := range m.to.Summaries(m.ctx, c.ID) {
		if err != nil {
			return nil, err
		}
		behind = append(behind, r)
	}
	for r, err := range m.to.Reflog(m.ctx, c.ID) {
		if err != nil {
			return nil, err
		}
		behind = append(behind, r)
	}
	before = append(before, &structure.Deletion{Subject: structure.KindContext, Context: c.ID, At: m.at}, c)
	return append(before, behind...), nil
}

func (m *mender) needContext(id structure.ContextID, thread structure.ThreadID) error {
	_, err := m.to.Context(m.ctx, id)
	if !errors.Is(err, backend.ErrNotFound) {
		return err
	}
	if err := m.needThread(thread); err != nil {
		return err
	}
	m.report.Names++
	m.madeUp[id] = true
	return m.apply(&structure.Context{ID: id, Thread: thread, CreatedAt: m.at})
}

// finish gives contexts of which the thread is gone one to be found in.
func (m *mender) finish() error {
	for _, id := range slices.SortedFunc(maps.Keys(m.madeUp), func(a, b structure.ContextID) int { return bytes.Compare(a[:], b[:]) }) {
		c, err := m.to.Context(m.ctx, id)
		if errors.Is(err, backend.ErrNotFound) || err == nil && !c.Thread.IsZero() {
			continue // it was deleted later
		}
		if err != nil {
			return err
		}
		m.at = time.UnixMilli(c.MovedAt).UTC()
		t := &structure.Thread{ID: structure.DeriveID[structure.ThreadID]("salvaged", id.String()), Title: "salvaged " + id.String(), CreatedAt: m.at, UpdatedAt: m.at}
		in := &structure.Context{ID: structure.DeriveID[structure.ContextID]("salvaged", id.String()), Thread: t.ID, Parent: id, Base: c.Tip, Tip: c.Tip, CreatedAt: m.at}
		with := *t
		with.Active = in.ID
		if err := m.apply(t, in, &structure.Branch{Thread: t.ID, Name: "main", Context: in.ID, CreatedAt: m.at}, &with); err != nil {
			return err
		}
	}
	return nil
}

func (m *mender) span(s structure.Span) error {
	if err := m.needSpansBefore(s.Ref); err != nil {
		return err
	}
	var err error
	if s.Set, err = m.setIfThere(s.Set); err != nil {
		return err
	}
	s.Usages = append([]structure.Usage(nil), s.Usages...)
	for i := range s.Usages {
		u := &s.Usages[i]
		for _, id := range u.Named(nil) {
			if err := m.needContent(*id); err != nil {
				return err
			}
		}
	}
	err = m.apply(&s)
	for i := range s.Usages {
		if !errors.Is(err, backend.ErrExists) {
			break
		}
		s.Usages[i].Lookup = 0 // the message that had it was deleted by a commit that is gone
		err = m.apply(&s)
	}
	return err
}

// needSpan has a place there, with notes for the messages up to it that are gone.
func (m *mender) needSpan(r structure.SpanRef) error {
	if r.IsZero() {
		return nil
	}
	return m.needSpansBefore(structure.SpanRef{Run: r.Run, Seq: r.Seq + 1})
}

// needSpansBefore has all places of a run there that come before one.
func (m *mender) needSpansBefore(r structure.SpanRef) error {
	last, err := m.to.Last(m.ctx, r.Run)
	if errors.Is(err, backend.ErrNotFound) {
		m.report.Names++
		err = m.run(r.Run)
	}
	if err != nil || last.Seq+1 >= r.Seq {
		return err
	}
	if r.Seq-last.Seq > mostHole {
		return fmt.Errorf("%d messages before %v are gone: %w", r.Seq-last.Seq-1, r, backend.ErrInvalid)
	}
	if m.note == nil {
		m.note = structure.NewBlock("text/plain", madeUp, m.at, []byte(SalvageNote))
	}
	for seq := last.Seq + 1; seq < r.Seq; {
		records := []structure.Record{m.note}
		for ; seq < r.Seq && len(records) < 1_000; seq++ {
			records = append(records, &structure.Span{Ref: structure.SpanRef{Run: r.Run, Seq: seq}, Usages: []structure.Usage{{
				Kind: structure.MessageUsage, Role: "system", Content: m.note.ID, By: salvaged, CreatedAt: m.at,
			}}})
		}
		if err := m.apply(records...); err != nil {
			return err
		}
		m.report.Messages += uint64(len(records) - 1)
	}
	return nil
}

// run makes up a run. A context that moves into it with the commit that is brought stood
// where it began, before.
func (m *mender) run(id structure.RunID) error {
	r := &structure.Run{ID: id}
	for _, record := range m.records {
		t, ok := record.(*structure.Tip)
		if !ok || t.Span.Run != id {
			continue
		}
		switch c, err := m.to.Context(m.ctx, t.Context); {
		case err == nil && c.Tip.Run != id:
			r.Parent = c.Tip
			if t, err := m.to.Thread(m.ctx, c.Thread); err == nil {
				r.Home = t.Home()
			}
		case err != nil && !errors.Is(err, backend.ErrNotFound):
			return err
		}
		break
	}
	return m.apply(r)
}

// SalvageNote is what a message says that stands in the place of one that is gone.
const SalvageNote = "[A message that was here is lost: the store was damaged.]"

// madeUp and salvaged are the origin of what a salvage adds.
var (
	madeUp   = content.BlockOrigin{Kind: content.OriginSystem}
	salvaged = content.Attribution{SourceID: "lineage salvage"}
)
