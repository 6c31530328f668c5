package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// SalvageNote is the text of messages that stand in for lost ones.
const SalvageNote = "[A message that was here is lost: the store was damaged.]"

// madeUp and salvaged are the origin of blocks and messages that a salvage adds.
var (
	madeUp   = content.BlockOrigin{Kind: content.OriginSystem}
	salvaged = content.Attribution{SourceID: "lineage salvage"}
)

// mostHole is the greatest number of consecutive messages that are replaced by notes.
// Damage does not lose more, and a place far behind the end of its run is damage itself.
const mostHole = 1 << 20

// needContent makes sure that there is content of an id. Lost content is stored as erased.
func (m *mender) needContent(id content.ID) error {
	known, err := m.known(id)
	if err != nil || known {
		return err
	}
	m.report.Contents++
	return m.erased(&structure.Block{Block: content.Block{ID: id, Size: 1, Origin: madeUp, CreatedAt: m.at}})
}

// known reports whether there is content of an id, erased or not.
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

// erased states content of which only the description is left.
func (m *mender) erased(b *structure.Block) error {
	if known, err := m.known(b.ID); err != nil || known {
		return err
	}
	return m.apply(b, &structure.Deletion{Subject: structure.KindBlock, Content: b.ID, At: m.at})
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

// instead returns records that replace a context that was made up. Branches, summaries and
// reflog entries of that one are kept.
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

// finish creates a thread for each context whose thread was lost.
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

// needSpan makes sure that there is a span at a place, with notes for lost messages up to it.
func (m *mender) needSpan(r structure.SpanRef) error {
	if r.IsZero() {
		return nil
	}
	return m.needSpansBefore(structure.SpanRef{Run: r.Run, Seq: r.Seq + 1})
}

// needSpansBefore makes sure that there are spans at all places of a run before one.
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

// run makes up a run. A context that moves into it with the commit at hand pointed to the
// span before its first.
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
