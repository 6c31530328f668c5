package bundle

import (
	"errors"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A bundle has remnants of those ancestors of its contexts that were deleted or not selected. The import adds them
// together with their forks, unless the store has a context or an equal remnant with the id.

// remnant chooses the id in the store for a remnant of the bundle.
func (im *importer) remnant(r *structure.Remnant) error {
	own := *r
	own.Parent = im.localContext(own.Parent)
	for ; ; own.ID = structure.DeriveID[structure.ContextID]("bundle", own.ID.String()) {
		lives, err := im.lives(own.ID)
		if err != nil {
			return err
		}
		if lives && own.ID != r.ID {
			continue
		}
		stored, err := im.engine.Remnant(im.ctx, own.ID)
		if err != nil && !errors.Is(err, backend.ErrNotFound) {
			return err
		}
		if lives || err != nil || structure.Equal(stored, &own) {
			break
		}
	}
	im.contexts[r.ID], im.remnants[own.ID] = own.ID, &own
	return nil
}

// lives reports whether a context with an id is in the store, or is added by this import.
func (im *importer) lives(id structure.ContextID) (bool, error) {
	if im.taken[id] {
		return true, nil
	}
	_, err := im.engine.Context(im.ctx, id)
	if errors.Is(err, backend.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// isFree reports whether nothing in the store has the id of a context, or only a remnant equal to the one that this
// context would leave.
func (im *importer) isFree(t *theirs) (bool, error) {
	stored, err := im.engine.Remnant(im.ctx, t.ID)
	if errors.Is(err, backend.ErrNotFound) {
		return true, nil
	}
	return err == nil && structure.Equal(stored, t.Remnant()), err
}

// stateParent adds the remnants above a new context, the topmost first.
func (im *importer) stateParent(to *commitDraft, t *theirs) error {
	var line []*structure.Remnant
	for id := t.Parent; !id.IsZero() && !to.stated[id]; {
		lives, err := im.lives(id)
		if err != nil {
			return err
		}
		if lives {
			break
		}
		r := im.remnants[id]
		if r == nil {
			if r, err = im.engine.Remnant(im.ctx, id); errors.Is(err, backend.ErrNotFound) {
				to.stated[id] = true
				to.Remnant(id)
				break
			}
			if err != nil {
				return err
			}
		}
		to.stated[id] = true
		line, id = append(line, r), r.Parent
	}
	for i := len(line) - 1; i >= 0; i-- {
		to.Adopt(line[i])
	}
	return nil
}
