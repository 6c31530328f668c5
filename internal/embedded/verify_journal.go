package embedded

import (
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// journal reads every frame up to a state and replays it into the temporary index.
func (v *verifier) journal(until index.State, shadow *Engine) error {
	number := uint64(0)
	for f, err := range v.files.Frames(journal.Position{}) {
		if err != nil {
			return v.journalDamage(err)
		}
		if f.Number > until.Number || f.Number == until.Number && f.Mark {
			break
		}
		if err := v.progress(f.End - f.Position.Offset); err != nil {
			return err
		}
		if f.Mark {
			continue
		}
		if f.Number != number+1 {
			v.damaged = true
			if err := v.found(v.frameFinding(f, fmt.Sprintf("commit %d follows commit %d", f.Number, number))); err != nil {
				return err
			}
		}
		number = f.Number
		if err := v.frame(shadow, f); err != nil {
			return err
		}
	}
	if !v.damaged {
		if err := v.endLookup(); err != nil {
			return err
		}
	}
	if number < until.Number && !v.damaged {
		v.damaged = true
		return v.found(backend.Finding{Subject: "journal", Problem: fmt.Sprintf("ends with commit %d, but the index holds commit %d", number, until.Number)})
	}
	return nil
}

// frame decodes a frame. It replays the commit into the temporary index, if there is one and no damage was found before.
func (v *verifier) frame(shadow *Engine, f journal.Frame) (err error) {
	replays := shadow != nil && !v.damaged
	if replays {
		err = v.replay(shadow, f)
	} else {
		_, err = structure.DecodeCommit(f.Payload)
	}
	switch {
	case errors.Is(err, errStopped):
		return err
	case err != nil:
		v.damaged = true
		return v.found(v.frameFinding(f, err.Error()))
	case replays:
		return shadow.index.Throttle()
	}
	return nil
}

func (v *verifier) replay(shadow *Engine, f journal.Frame) error {
	c, err := v.engine.decodeFrame(f)
	if err != nil {
		return err
	}
	if err := v.checkLookup(f.Position.Segment, c.Commit); err != nil {
		return err
	}
	v.pruned.Filter(c.Commit)
	return shadow.replayCommit(c)
}

// journalDamage reports damage that ends the reading of the journal.
func (v *verifier) journalDamage(err error) error {
	var damage *backend.CorruptError
	if !errors.As(err, &damage) {
		return err
	}
	v.damaged = true
	if *damage == v.last {
		return nil // already reported when the journal was opened
	}
	v.last = *damage
	return v.found(backend.Finding{
		Subject: "journal", File: damage.File, Offset: damage.Offset, Problem: damage.What,
		Repair: "restore from a backup; without one, 'lineage salvage' creates a new store from everything that can be read",
	})
}

func (v *verifier) frameFinding(f journal.Frame, problem string) backend.Finding {
	return backend.Finding{
		Subject: "journal", File: v.engine.journal.SegmentName(f.Position.Segment), Offset: f.Position.Offset,
		ID: fmt.Sprint(f.Number), Problem: problem,
	}
}

// packs checks the lookup tables of packs. If they are damaged, the index cannot be compared with
// the journal.
func (v *verifier) packs() error {
	for _, err := range v.files.PackDamage() {
		var damage *backend.CorruptError
		if !errors.As(err, &damage) {
			return err
		}
		if err := v.found(backend.Finding{
			Subject: "journal", File: damage.File, Offset: damage.Offset, Problem: damage.What, Repair: "'lineage pack'",
		}); err != nil {
			return err
		}
	}
	for err := range v.files.CheckSums(v.layer.last) {
		v.lost = true
		if err := v.lookupFault(err); err != nil {
			return err
		}
	}
	return nil
}

// lookupFault reports damage in the lookup tables of a pack. Damage in its commits is found by
// reading the journal.
func (v *verifier) lookupFault(err error) error {
	var damage *backend.CorruptError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &damage):
		return err
	case !errors.Is(err, journal.ErrLookup):
		return nil
	}
	return v.found(backend.Finding{
		Subject: "index", File: damage.File, Offset: damage.Offset, Problem: damage.What, Repair: backend.RebuildIndex,
	})
}

// checkLookup passes a commit to the check of its pack.
func (v *verifier) checkLookup(segment uint32, c *structure.Commit) error {
	if v.lookup != nil && segment > v.lookup.Last() {
		if err := v.endLookup(); err != nil {
			return err
		}
	}
	if v.lookup == nil && segment <= v.layer.last {
		var err error
		if v.lookup, err = v.files.NewCheck(segment); err != nil {
			return err
		}
	}
	if v.lookup == nil {
		return nil
	}
	return v.lookup.Add(c.Number, c.Records)
}

// endLookup ends the check of a pack.
func (v *verifier) endLookup() error {
	check := v.lookup
	if v.lookup = nil; check == nil {
		return nil
	}
	return v.lookupFault(check.Done())
}
