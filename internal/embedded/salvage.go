package embedded

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/embedded/live"
	"github.com/lineage-store/lineage/internal/embedded/salvage"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// LostPart is a part of a store's files that cannot be read.
type LostPart = journal.LostPart

// SalvageOptions configure a salvage.
type SalvageOptions struct {
	// Lost, if not nil, is called with each unreadable part of the journal.
	Lost func(LostPart)
	// Progress, if not nil, is called with the bytes of the journal that were processed.
	Progress func(done, total int64)
}

// SalvageReport is the result of a salvage.
type SalvageReport = salvage.Report

// Salvage creates a new store from everything that can be read in the journal of a damaged
// one. The damaged store is not changed, and its index is not needed. Messages after damage
// are kept, and each lost message is replaced by a note. The commits of the new store have
// other numbers.
//
// Data that was deleted or erased by a lost commit may reappear.
func Salvage(ctx context.Context, from, dir string, o SalvageOptions) (SalvageReport, error) {
	report, err := salvageInto(ctx, from, dir, o)
	if err != nil {
		return report, fmt.Errorf("salvage %s to %s: %w", from, dir, err)
	}
	return report, nil
}

func salvageInto(ctx context.Context, from, dir string, o SalvageOptions) (report SalvageReport, err error) {
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
		// After a loss, the record that follows the chunks of a body does not prove that all of them are stored.
		to.collecting.Collected.Store(true)
		if err := addReadable(ctx, from, to, total, o, &report); err != nil {
			return err
		}
		if err := to.Sync(ctx); err != nil {
			return err
		}
		return firstFinding(to.Verify(ctx, backend.VerifyOptions{}))
	})
	return report, err
}

// addReadable adds everything that can be read in a journal, of so many bytes, to a new store.
func addReadable(ctx context.Context, from string, to *Engine, total int64, o SalvageOptions, report *SalvageReport) error {
	m := salvage.New(ctx, to, report)
	lost := func(l LostPart) {
		if report.Losses++; o.Lost != nil {
			o.Lost(l)
		}
	}
	pending, owner, err := live.ReadFile(vfs.OS(), filepath.Join(from, journalDir, pendingFile))
	if damage := new(backend.CorruptError); errors.As(err, &damage) {
		lost(LostPart{File: damage.File, What: damage.What})
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
		if owner == store {
			m.Pending = pending
		}
		return m.Commit(f)
	}
	last, err := journal.Salvage(vfs.OS(), filepath.Join(from, journalDir), visit, lost)
	if err != nil {
		return err
	}
	report.Missing = last - report.Commits
	return m.Finish()
}

// requireOutside refuses a directory inside another.
func requireOutside(dir, other string) error {
	in, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if other, err = filepath.Abs(other); err != nil {
		return err
	}
	if rel, err := filepath.Rel(other, in); err == nil && filepath.IsLocal(rel) {
		return fmt.Errorf("%s is inside the salvaged store: %w", dir, backend.ErrInvalid)
	}
	return nil
}
