package salvage

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxHole is the maximum number of consecutive lost messages that are replaced by notes. Damage does not lose more,
// so a larger gap means a wrong place.
const maxHole = 1 << 20

// maxNotes is the largest number of notes in a commit.
const maxNotes = 1_000

func (m *Mender) span(s structure.Span) error {
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
		s.Usages[i].Lookup = 0 // a lost commit deleted its former owner
		err = m.apply(&s)
	}
	return err
}

// needSpan makes sure that a place exists: lost messages up to it become notes.
func (m *Mender) needSpan(r structure.SpanRef) error {
	if r.IsZero() {
		return nil
	}
	return m.needSpansBefore(structure.SpanRef{Run: r.Run, Seq: r.Seq + 1})
}

// needSpansBefore makes sure that all places of a run before r exist.
func (m *Mender) needSpansBefore(r structure.SpanRef) error {
	last, err := m.to.Last(m.ctx, r.Run)
	if errors.Is(err, backend.ErrNotFound) {
		m.report.Names++
		err = m.run(r.Run)
	}
	if err != nil || last.Seq+1 >= r.Seq {
		return err
	}
	if r.Seq-last.Seq > maxHole {
		return fmt.Errorf("%d messages before %v are gone: %w", r.Seq-last.Seq-1, r, backend.ErrInvalid)
	}
	if m.note == nil {
		m.note = structure.NewBlock("text/plain", lostOrigin, m.at, []byte(Note))
	}
	for seq := last.Seq + 1; seq < r.Seq; {
		end := min(r.Seq, seq+maxNotes)
		err := m.put(func(b *write.Batch) {
			b.Adopt(m.note)
			for at := seq; at < end; at++ {
				b.Span(structure.SpanRef{Run: r.Run, Seq: at}, structure.SpanSetID{}, []structure.Usage{{
					Kind: structure.MessageUsage, Role: "system", Content: m.note.ID, By: salvaged, CreatedAt: m.at,
				}})
			}
		})
		if err != nil {
			return err
		}
		m.report.Messages += end - seq
		seq = end
	}
	return nil
}

// run recreates a lost run. If the current commit moves a context into it, the run's
// parent is the tip of that context.
func (m *Mender) run(id structure.RunID) error {
	var parent structure.SpanRef
	var home structure.Home
	for _, record := range m.records {
		t, ok := record.(*structure.Tip)
		if !ok || t.Span.Run != id {
			continue
		}
		switch c, err := m.to.Context(m.ctx, t.Context); {
		case err == nil && c.Tip.Run != id:
			parent = c.Tip
			if t, err := m.to.Thread(m.ctx, c.Thread); err == nil {
				home = t.Home()
			}
		case err != nil && !errors.Is(err, backend.ErrNotFound):
			return err
		}
		break
	}
	if home == (structure.Home{}) {
		m.homeless[id] = m.at
	}
	return m.put(func(b *write.Batch) { b.NewRun(id, parent, home) })
}

// Note is the text that replaces a lost message.
const Note = "[A message that was here is lost: the store was damaged.]"

// The origin of everything that a salvage adds.
var (
	lostOrigin = content.BlockOrigin{Kind: content.OriginSystem}
	salvaged   = content.Attribution{SourceID: "lineage salvage"}
)

func (m *Mender) block(b *structure.Block) error {
	err := m.apply(b)
	if !refused(err) {
		return err
	}
	if b.Gone() { // it was erased and collected
		return m.erased(b)
	}
	return m.needContent(b.ID) // some of its chunks are lost
}

// erased adds content as erased: only its description is left.
func (m *Mender) erased(b *structure.Block) error {
	if known, err := m.known(b.ID); err != nil || known {
		return err
	}
	return m.put(func(to *write.Batch) {
		to.Adopt(b)
		to.Erase(b.ID)
	})
}

// known reports whether content exists, erased or not.
func (m *Mender) known(id content.ID) (bool, error) {
	_, err := m.to.Blocks(m.ctx, []content.ID{id})
	switch {
	case errors.Is(err, backend.ErrNotFound):
		return false, nil
	case errors.Is(err, backend.ErrErased):
		return true, nil
	}
	return err == nil, err
}

// needContent makes sure that content exists: lost content is added as erased.
func (m *Mender) needContent(id content.ID) error {
	known, err := m.known(id)
	if err != nil || known {
		return err
	}
	m.report.Contents++
	return m.erased(structure.Described(content.Block{ID: id, Size: 1, Origin: lostOrigin, CreatedAt: m.at}))
}
