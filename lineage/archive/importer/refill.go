package importer

import (
	"context"

	"github.com/lineage-store/lineage/internal/write"
)

// Fill implements write.Change. At the first attempt the commit is filled already.
func (f *commitDraft) Fill(_ context.Context, _ *write.Batch, try write.Try) error {
	if try.Number == 0 {
		return nil
	}
	l := f.loader
	f.refilled = true
	f.Places()
	l.replaying = true
	defer func() { l.replaying = false }()
	shared := f.added.shared // shared messages are counted already and are not in items
	// If a newer state refuses the same span again, its run cannot be continued.
	f.fresh = try.Fresh && f.refused != nil && f.refused.Error() == try.Err.Error()
	f.added, f.refused = added{shared: shared}, try.Err
	clear(f.contents)
	f.forget()
	begun := make(map[*loading]bool)
	begin := func(st *loading) error {
		if begun[st] {
			return nil
		}
		begun[st] = true
		return l.resume(st)
	}
	for _, i := range f.items {
		err := begin(i.loading)
		switch {
		case err != nil:
		case i.leftOut:
		case i.node != nil:
			_, err = l.placeOne(i.loading, i.node)
		default:
			err = l.finish(i.loading)
		}
		if err != nil {
			return err
		}
	}
	if f.held == nil {
		return nil
	}
	if err := begin(f.held); err != nil || f.held.leftOut {
		return err
	}
	return l.protect(f.held.thread)
}
