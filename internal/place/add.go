package place

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Place finds a message after a span, or adds it. The zero span is the beginning of a history.
func (p *Placer) Place(after structure.SpanRef, m *Message) (Match, error) {
	f, err := p.Find(after, m)
	if err == nil && !f.How.Has() {
		f.Span, err = p.Add(after, m, f)
		f.Batch = true
	}
	return f, err
}

// Add adds a message after a span, given the result of Find. A message that the store has elsewhere, or with other
// content, becomes the latest version of its id.
func (p *Placer) Add(after structure.SpanRef, m *Message, f Match) (structure.SpanRef, error) {
	usages := slices.Clone(m.Usages)
	if err := p.addContents(m, usages); err != nil {
		return structure.SpanRef{}, err
	}
	lookup := uint64(0)
	if m.ID != "" && (f.last == 0 || !m.Behind) {
		lookup = f.last + 1
	}
	at, err := p.placeAfter(after, m.Apart, lookup)
	if err != nil {
		return structure.SpanRef{}, err
	}
	if err := p.number(usages, m.ID, version{after, at, lookup}); err != nil {
		return structure.SpanRef{}, err
	}
	p.batch.Span(at, structure.SpanSetID{}, usages)
	p.added[child{after, sha256.Sum256(p.message)}] = at
	return at, nil
}

// number sets the lookup numbers of a message's usages: the version for its own id, the next number for other ids.
func (p *Placer) number(usages []structure.Usage, id string, own version) error {
	numbered := id == ""
	for i := range usages {
		u := &usages[i]
		switch {
		case !numbered && u.SourceID == id:
			u.Lookup, numbered = own.lookup, true
		case u.Lookup > 0:
			v, known := p.versions[u.SourceID]
			for f, err := range p.from.Find(p.ctx, u.SourceID, p.thread.ID, backend.Found{}) {
				if err != nil {
					return err
				}
				if !known {
					v.lookup = f.Lookup
				}
				break
			}
			u.Lookup = v.lookup + 1
		}
		if u.Lookup > 0 {
			p.versions[u.SourceID] = version{own.after, own.span, u.Lookup}
		}
	}
	return nil
}

// placeAfter returns the position for a new span after another one: in the same run if that ends there, else in a new
// run. If no lookup number makes the message unique, the id of its run is derived from what it says, so that two
// writers cannot both add it.
func (p *Placer) placeAfter(after structure.SpanRef, apart bool, lookup uint64) (structure.SpanRef, error) {
	if !after.IsZero() && !apart {
		end, known := p.ends[after.Run]
		if !known && !p.rules.Fresh {
			r, err := p.run(after.Run)
			if err != nil {
				return structure.SpanRef{}, err
			}
			end, known = r.last, r.own
		}
		if known && end == after.Seq {
			p.ends[after.Run] = end + 1
			return structure.SpanRef{Run: after.Run, Seq: end + 1}, nil
		}
	}
	var id structure.RunID
	for n := uint64(0); lookup == 0 && !p.rules.NewThread; n++ {
		id = p.derived(after, n)
		if taken, err := p.taken(id); err != nil {
			return structure.SpanRef{}, err
		} else if !taken {
			break
		}
	}
	run := p.batch.NewRun(id, after, p.thread.Home())
	p.ends[run], p.begun[run] = 1, after
	return structure.SpanRef{Run: run, Seq: 1}, nil
}

// addContents adds the contents of a message to the batch. If the batch does not have the content of a usage, the
// usage omits what the block states, unless Looks depends on it.
func (p *Placer) addContents(m *Message, usages []structure.Usage) error {
	contents := m.Contents
	for i := range usages {
		u := &usages[i]
		_, there := p.contents[u.Content]
		if !there && len(contents) > 0 && contents[0].ID == u.Content && contents[0].Block != nil {
			switch {
			case u.Origin == nil || !u.Form.IsZero():
				if u.Type == contents[0].Type {
					u.Type = ""
				}
			case u.Type == content.TypeText && *u.Origin == content.BlockOrigin{Kind: kindOf(usages)}:
				u.Type, u.Origin = "", nil
			}
		}
		for len(contents) > 0 && u.Names(contents[0].ID) {
			if err := p.addContent(&contents[0]); err != nil {
				return err
			}
			contents = contents[1:]
		}
	}
	return nil
}

// addContent adds content to the batch if it is missing. A large body is uploaded first, unless the store has it.
func (p *Placer) addContent(c *Content) error {
	if _, there := p.contents[c.ID]; there {
		return nil
	}
	block := c.Block
	if block == nil {
		has, err := p.from.Has(p.ctx, []content.ID{c.ID})
		if err != nil || has[0] {
			return err
		}
		block, err = p.writer.Upload(p.ctx, content.Block{Type: c.Type, Origin: content.BlockOrigin{Kind: c.Kind}}, bytes.NewReader(c.Body))
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	if block.CreatedAt.IsZero() {
		block.CreatedAt = p.batch.Time()
	}
	p.contents[block.ID] = block.Size
	p.batch.Adopt(block)
	return nil
}

// End returns the last position of a run that the batch continues or begins, or 0 for other runs.
func (p *Placer) End(run structure.RunID) uint64 { return p.ends[run] }

// Begun returns the span after which a run of the batch begins, or the zero span for other runs.
func (p *Placer) Begun(run structure.RunID) structure.SpanRef { return p.begun[run] }

// Before returns the span before another one, in the batch or in the store.
func (p *Placer) Before(at structure.SpanRef) (structure.SpanRef, error) {
	if at.Seq == 1 && p.isNew(at.Run) {
		return p.begun[at.Run], nil
	}
	return backend.Before(p.ctx, p.from, at)
}
