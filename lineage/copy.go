package lineage

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// CopyOptions configure a copy.
type CopyOptions struct {
	// Progress, when not nil, is called with the number of commits that the copy has and the number that it will
	// have.
	Progress func(done, total int64)
}

// CopyReport is the result of a copy.
type CopyReport struct {
	// Commit is the number of the last commit of the copy.
	Commit uint64 `json:"commits"`
	// Added is the number of commits added.
	Added uint64 `json:"added"`
}

// Copy copies the commits of a store into another one, whatever their engines. The copy has the same history, with
// the same ids, numbers and digests. It has what the source had when Copy was called, and is durable when Copy
// returns. Another call continues an interrupted copy, and a copy whose source has grown.
//
// The other store must be empty or an earlier state of the source. Anything else is refused with an error that
// matches ErrDiverged. So is a copy in which garbage was collected, with ErrCollected, when the source has more
// commits. To give the copy the id of the source, create it with Options.ID. Two kinds of engine cannot be copied to:
// one that does not implement backend.Receiver, and the engine of a store that another process has open
// (errors.ErrUnsupported).
//
// Content that was erased in the source is not copied, except for the chunks of large bodies before a collection of
// the source. The assignment of commits to requests of sessions is not copied.
func Copy(ctx context.Context, from, to *Store, o CopyOptions) (CopyReport, error) {
	report, err := copyStore(ctx, from, to, o)
	if err != nil {
		err = fmt.Errorf("copy store: %w", err)
	}
	return report, err
}

func copyStore(ctx context.Context, from, to *Store, o CopyOptions) (report CopyReport, err error) {
	receiver, err := ability[backend.Receiver](ctx, to)
	if err != nil {
		return report, err
	}
	if damage := from.Damage(); damage != nil { // a copy of the readable part would look complete
		return report, damage
	}
	last, err := from.view.Head(ctx)
	if err != nil {
		return report, err
	}
	first, err := to.view.Head(ctx)
	for at := first; err == nil; {
		if o.Progress != nil {
			o.Progress(int64(at.Number), int64(max(at.Number, last.Number)))
		}
		failed := receiver.Receive(ctx, upTo(from.view.Feed(ctx, at), last, o.Progress))
		was := at
		at, err = to.view.Head(ctx)
		report.Commit, report.Added = at.Number, at.Number-first.Number
		if failed == nil && (err != nil || at.Number >= last.Number) {
			return report, errors.Join(err, to.Sync(ctx))
		}
		if failed == nil && at == was {
			failed = fmt.Errorf("the source ends after commit %d of %d: %w", at.Number, last.Number, ErrDiverged)
		}
		// Another process continues the same copy, or writes to the store. The feed shows which.
		if failed != nil && (!errors.Is(failed, backend.ErrConflict) || at == was) {
			return report, failed
		}
	}
	return report, err
}

// upTo yields the commits of a feed up to a cursor.
func upTo(feed iter.Seq2[*structure.Commit, error], last backend.Cursor, progress func(done, total int64)) iter.Seq2[*structure.Commit, error] {
	return func(yield func(*structure.Commit, error) bool) {
		for c, err := range feed {
			if err == nil && c.Number > last.Number || !yield(c, err) || err != nil {
				return
			}
			if progress != nil {
				progress(int64(c.Number), int64(last.Number))
			}
		}
	}
}
