package salvage

import (
	"errors"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Commit adds a commit: unchanged if its references exist, otherwise record by record.
func (m *Mender) Commit(f journal.Frame) error {
	c, err := structure.DecodeCommit(f.Payload)
	if err != nil {
		return nil // the checksum is right but the content is not, so a faulty program wrote it; it counts as missing
	}
	m.report.Commits++
	c.Number = f.Number
	if m.Pending.Strip(c); len(c.Records) == 0 {
		return nil
	}
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

// record adds one record. Before that, it adds replacements for lost things that the record refers to.
func (m *Mender) record(r structure.Record) error {
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
	case *structure.Remnant:
		m.remnants[r.ID] = r
		return nil
	case *structure.Cut:
		return nil // nothing was added after it, and spans of this store have new ids
	case *structure.Deletion:
		err := m.apply(r)
		if errors.Is(err, backend.ErrNotFound) {
			return nil // it is lost already
		}
		return err
	}
	return m.apply(r)
}
