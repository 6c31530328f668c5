package embedded

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

// RestoreOptions configure a restore.
type RestoreOptions struct {
	// Progress, if not nil, is called with the work done, in bytes of the journal.
	Progress func(done, total int64)
}

// A restore copies the journal, builds an index and verifies both.
const restorePasses = 3

// Restore copies a backup, or any store that is not open, into a new or empty directory, and
// verifies the copy deeply. A changed backup or a damaged store is an error that matches
// backend.ErrCorrupt; then dir is not created.
func Restore(ctx context.Context, from, dir string, o RestoreOptions) (backend.BackupReport, error) {
	report, err := restore(ctx, from, dir, o)
	if err != nil {
		return report, fmt.Errorf("restore %s to %s: %w", from, dir, err)
	}
	return report, nil
}

func restore(ctx context.Context, from, dir string, o RestoreOptions) (report backend.BackupReport, err error) {
	names, facts, known, err := readManifest(from)
	if err != nil {
		return report, err
	}
	unlock, err := lockSource(from)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	for _, f := range facts {
		report.Bytes += f.Size
	}
	report.Files = len(facts)
	c := copying{ctx: ctx, from: vfs.OS(), progress: o.Progress, total: restorePasses * report.Bytes}
	wanted := append([]manifestFact(nil), facts...)
	err = vfs.NewDir(dir, backend.ErrExists, func(partial string) error {
		if err := c.files(partial, names, facts); err != nil {
			return err
		}
		for i, f := range facts {
			if known != nil && f != wanted[i] {
				return &backend.CorruptError{File: names[i], What: "differs from the backed-up file"}
			}
		}
		var err error
		report.Commit, err = c.prove(partial, known)
		if err == nil && known != nil && report.Commit != known.Commit {
			err = &backend.CorruptError{File: from, What: fmt.Sprintf("holds %d commits of %d", report.Commit, known.Commit)}
		}
		return err
	})
	return report, err
}

// prove opens a copy, which builds its index, and verifies it. A copy of a backup must belong to the store in the
// manifest, and must not end in an incomplete frame as after a crash.
func (c *copying) prove(dir string, known *manifest) (commit uint64, err error) {
	before := c.done
	report := func(done, _ int64) {
		if c.progress != nil && done > 0 {
			c.progress(min(before+done, c.total), c.total)
		}
	}
	var mu sync.Mutex
	var repairs []string
	logger := logline.New(slog.LevelWarn, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		repairs = append(repairs, line)
	})
	e, err := Open(c.ctx, dir, Options{MustExist: true, Progress: report, Logger: logger})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	mu.Lock()
	cut := strings.Join(repairs, "\n")
	mu.Unlock()
	if cut != "" && known != nil {
		return 0, &backend.CorruptError{File: dir, What: cut}
	}
	id := e.StoreID()
	if actual := hex.EncodeToString(id[:]); known != nil && actual != known.Store {
		return 0, &backend.CorruptError{File: manifestFile, What: fmt.Sprintf("it is of the store %.80q, and the journal of %s", known.Store, actual)}
	}
	before += c.total / restorePasses
	if err := firstFinding(e.Verify(c.ctx, backend.VerifyOptions{Deep: true, Progress: report})); err != nil {
		return 0, err
	}
	head, err := e.Head(c.ctx)
	return head.Number, err
}

// readManifest returns the files of a backup, or of another store, for which facts contain only
// sizes.
func readManifest(dir string) (names []string, facts []manifestFact, m *manifest, err error) {
	inJournal := func(name string) string { return filepath.Join(dir, journalDir, name) }
	if err := vfs.CheckDir(filepath.Join(dir, journalDir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil, err
	}
	b, err := vfs.ReadFile(filepath.Join(dir, manifestFile), maxManifestSize)
	if errors.Is(err, fs.ErrNotExist) {
		return listJournal(dir)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	m = new(manifest)
	fault := func(what string) error {
		return &backend.CorruptError{File: filepath.Join(dir, manifestFile), What: what}
	}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, nil, nil, fault(err.Error())
	}
	switch {
	case m.Format < 1:
		return nil, nil, nil, fault("it states no format")
	case m.Format <= manifestFormat && len(m.Files) == 0:
		return nil, nil, nil, fault("it lists no files")
	}
	if m.Format > manifestFormat {
		return nil, nil, nil, fmt.Errorf("backup format %d, this program reads up to %d: %w", m.Format, manifestFormat, backend.ErrNewerFormat)
	}
	for _, f := range m.Files {
		if !isJournalFile(f.Name) {
			return nil, nil, nil, fault(fmt.Sprintf("%.80q is not a journal file", f.Name))
		}
		size, err := vfs.Size(inJournal(f.Name))
		if err != nil {
			return nil, nil, nil, err
		}
		if size != f.Size {
			return nil, nil, nil, &backend.CorruptError{File: inJournal(f.Name), What: fmt.Sprintf(
				"has %d bytes and was backed up with %d; if it was opened as a store since, remove %s to restore what it holds now", size, f.Size, manifestFile)}
		}
		names = append(names, inJournal(f.Name))
	}
	return names, m.Files, m, nil
}

// listJournal returns the journal files of a store, with their sizes as facts.
func listJournal(store string) (names []string, facts []manifestFact, m *manifest, err error) {
	dir := filepath.Join(store, journalDir)
	var entries []fs.DirEntry
	err = vfs.CheckDir(dir)
	if err == nil {
		entries, err = os.ReadDir(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil, err
	}
	for _, entry := range entries {
		if !isJournalFile(entry.Name()) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		size, err := vfs.Size(path)
		if err != nil {
			return nil, nil, nil, err
		}
		names = append(names, path)
		facts = append(facts, manifestFact{Name: entry.Name(), Size: size})
	}
	if len(names) > 0 {
		return names, facts, nil, nil
	}
	if found, err := IsStore(store); found || err != nil {
		return nil, nil, nil, cmp.Or(err, error(&backend.CorruptError{File: dir, What: "all files of the journal are missing"}))
	}
	return nil, nil, nil, fmt.Errorf("store: %w", backend.ErrNotFound)
}

// Lock locks a store until unlock is called. It waits while another process has it open.
func Lock(ctx context.Context, dir string, wait time.Duration) (unlock func() error, err error) {
	l, err := waitForLock(ctx, dir, vfs.Exclusive, wait, nil)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", dir, err)
	}
	return l.release, nil
}

// lockSource prevents changes to a store while it is copied.
func lockSource(dir string) (unlock func() error, err error) {
	l, err := lockDir(dir, vfs.Shared)
	if err != nil {
		return nil, err
	}
	return l.release, nil
}
