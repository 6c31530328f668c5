package bundle

import (
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// values adds the new values of a commit.
func (im *importer) values(c *structure.Commit) error {
	for _, r := range c.Records {
		if err := im.value(r.(*structure.Value)); err != nil {
			return err
		}
	}
	return nil
}

func (im *importer) value(v *structure.Value) error {
	key := v.ValueKey
	if err := im.localize(v); err != nil {
		return err
	}
	if m := &im.merging; m.latest == nil || m.key != key {
		if err := im.endValue(); err != nil {
			return err
		}
		*m = merging{key: key, latest: v}
		return im.beginValue()
	}
	m := &im.merging
	m.history = true
	switch {
	case m.done:
	case m.behind:
		return im.setValue(v)
	default:
		m.behind = sameValue(v, m.ours)
	}
	return nil
}

// localize replaces the ids in a value by those in the store.
func (im *importer) localize(v *structure.Value) error {
	switch v.Owner.Scope {
	case structure.ThreadScope:
		home, err := im.localHome(v.Home())
		v.Incarnation = home.Incarnation
		return err
	case structure.ContextScope:
		v.Owner.Context = im.localContext(v.Owner.Context)
		if v.Seen.IsZero() || v.Seen == structure.CollectedSpan {
			return nil
		}
		v.Seen = im.local(v.Seen)
		_, err := im.engine.Digest(im.ctx, v.Seen)
		if errors.Is(err, backend.ErrNotFound) {
			v.Seen, err = structure.CollectedSpan, nil
		}
		return err
	}
	return nil
}

// beginValue compares the latest record of a value in the bundle with the value in the store.
func (im *importer) beginValue() error {
	m := &im.merging
	ours, err := im.engine.Value(im.ctx, m.latest.ValueKey)
	if errors.Is(err, backend.ErrNotFound) {
		m.behind = true
		return nil
	}
	if err != nil {
		return err
	}
	m.ours, m.commit = &ours.Value, ours.Commit
	for was, err := range im.engine.ValueHistory(im.ctx, m.latest.ValueKey) {
		if err != nil {
			return err
		}
		if m.done = sameValue(&was.Value, m.latest); m.done {
			break
		}
	}
	return nil
}

// endValue sets the latest record of a value if it is the only one, or if it is newer than ours and not a successor
// of ours.
func (im *importer) endValue() error {
	m := &im.merging
	defer func() { *m = merging{} }()
	if m.latest == nil || m.done || m.behind && m.history {
		return nil
	}
	if m.ours != nil && !later(m.latest.At, m.ours.At) {
		return nil
	}
	return im.setValue(m.latest)
}

// setValue adds a value to the next commit of values. A commit can set a key only once.
func (im *importer) setValue(v *structure.Value) error {
	b := &im.newValues
	records := b.Records()
	if twice := !empty(b) && records[len(records)-1].(*structure.Value).ValueKey == v.ValueKey; twice || full(b) {
		number, err := im.flushValues()
		if err != nil {
			return err
		}
		if twice {
			im.merging.commit = number
		}
	}
	if empty(b) {
		b.Durability = backend.Normal
		b.Reset(im.writer.Now())
	}
	b.Adopt(v)
	b.Values = append(b.Values, backend.ExpectValue{Key: v.ValueKey, Commit: im.merging.commit})
	return nil
}

// flushValues applies the commit of values, and returns its number.
func (im *importer) flushValues() (uint64, error) {
	b := &im.newValues
	if empty(b) {
		return 0, nil
	}
	used := make(map[content.ID]bool)
	for _, r := range b.Records() {
		if id := r.(*structure.Value).Content; !id.IsZero() {
			used[id] = true
		}
	}
	if err := im.noteErased(used); err != nil {
		return 0, err
	}
	receipt, err := im.commit(b)
	if err != nil {
		return 0, err
	}
	im.report.Values += uint64(len(b.Records()))
	b.Reset(im.writer.Now())
	return receipt.Number, nil
}

// endValues commits the remaining values.
func (im *importer) endValues() error {
	if err := im.endValue(); err != nil {
		return err
	}
	_, err := im.flushValues()
	return err
}
