package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Loss is a part of a store's files that cannot be read.
type Loss = journal.Loss

// SalvageOptions configure a salvage.
type SalvageOptions struct {
	// Lost, when not nil, is called with each part of the journal that cannot be read.
	Lost func(Loss)
	// Progress, when not nil, is called now and then with how much of the journal was
	// gone through, in bytes.
	Progress func(done, total int64)
}

// SalvageReport tells what a salvage found.
type SalvageReport struct {
	// Commits is how many could be read, and Missing how many are known to be gone:
	// there may have been more at the end.
	Commits uint64 `json:"commits"`
	Missing uint64 `json:"missing"`
	// Losses is how many parts of the journal could not be read.
	Losses uint64 `json:"losses"`
	// Messages is how many messages are gone whose places are known. A note stands in
	// the place of each.
	Messages uint64 `json:"messages"`
	// Contents is how many contents are gone that messages are known to have had. They
	// read as erased.
	Contents uint64 `json:"contents"`
	// Names is how many threads, contexts and runs are there again of which nothing but
	// the id is known. A context whose thread is lost is in a thread of its own, and so is a
	// run that no context leads to.
	Names uint64 `json:"names"`
	// Records is how many other records were left out, for what they are about is gone.
	Records uint64 `json:"records"`
}

// Whole reports that nothing is known to be lost.
func (r *SalvageReport) Whole() bool { return r.Missing == 0 && r.Losses == 0 }

// Salvage makes a new store of everything that can be read in the journal of a damaged
// one, which is not changed and whose index is not needed. What was said behind a
// damaged place is there, with a note in the place of each message that is not. The
// new store is another: its commits have other numbers.
//
// What was deleted or erased by a commit that is gone may be there again.
func Salvage(ctx context.Context, from, dir string, o SalvageOptions) (SalvageReport, error) {
	report, err := salvage(ctx, from, dir, o)
	if err != nil {
		return report, fmt.Errorf("salvage %s to %s: %w", from, dir, err)
	}
	return report, nil
}

func salvage(ctx context.Context, from, dir string, o SalvageOptions) (report SalvageReport, err error) {
	_, facts, _, err := listJournal(from)
	if err != nil {
		return report, err
	}
	var total int64
	for _, f := range facts {
		total += f.Size
	}
	if err := requireOutside(dir, from); err != nil {
		return report, err
	}
	unlock, err := lockSource(from)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	err = vfs.NewDir(dir, backend.ErrExists, func(partial string) (err error) {
		to, err := Open(ctx, partial, Options{Durability: backend.Normal})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, to.Close()) }()
		m := newMender(ctx, to, &report)
		lost := func(l Loss) {
			if report.Losses++; o.Lost != nil {
				o.Lost(l)
			}
		}
		pending, of, err := readPending(vfs.OS(), from)
		if damage := new(backend.CorruptError); errors.As(err, &damage) {
			lost(Loss{File: damage.File, What: damage.What})
		} else if err != nil {
			return err
		}
		var done int64
		visit := func(store [16]byte, f journal.Frame) error {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if done += int64(len(f.Payload)); o.Progress != nil {
				o.Progress(min(done, total), total)
			}
			if of == store {
				m.pending = pending
			}
			return m.commit(f)
		}
		last, err := journal.Salvage(vfs.OS(), filepath.Join(from, journalDir), visit, lost)
		if err != nil {
			return err
		}
		report.Missing = last - report.Commits
		if err := m.finish(); err != nil {
			return err
		}
		if err := to.Sync(ctx); err != nil {
			return err
		}
		for finding, err := range to.Verify(ctx, backend.VerifyOptions{}) {
			if err != nil {
				return err
			}
			return &backend.CorruptError{File: finding.File, Offset: finding.Offset, What: finding.String()}
		}
		return nil
	})
	return report, err
}

// requireOutside refuses a directory in another.
func requireOutside(dir, other string) error {
	in, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if other, err = filepath.Abs(other); err != nil {
		return err
	}
	if rel, err := filepath.Rel(other, in); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%s is in the store that is salvaged: %w", dir, backend.ErrInvalid)
	}
	return nil
}
