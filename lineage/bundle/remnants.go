package bundle

import (
	"errors"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// A bundle has remnants of the contexts above its own that were deleted or not chosen. The store
// gets them with their forks, unless it has a context or an equal remnant with the id.

// remnant decides which id a remnant of the bundle has here.
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
		is, err := im.engine.Remnant(im.ctx, own.ID)
		if err != nil && !errors.Is(err, backend.ErrNotFound) {
			return err
		}
		if lives || err != nil || structure.Equal(is, &own) {
			break
		}
	}
	im.contexts[r.ID], im.remnants[own.ID] = own.ID, &own
	return nil
}

// lives reports whether there is a context with an id here, or will be with this import.
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

// isFree reports whether the store has nothing with the id of a context, or a remnant that is as that
// context would leave it.
func (im *importer) isFree(t *theirs) (bool, error) {
	is, err := im.engine.Remnant(im.ctx, t.ID)
	if errors.Is(err, backend.ErrNotFound) {
		return true, nil
	}
	return err == nil && structure.Equal(is, t.Remnant()), err
}

// stateParent states the remnants above a new context, the highest first.
func (im *importer) stateParent(to *change, t *theirs) error {
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
