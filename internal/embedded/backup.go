package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	stdhash "hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

var (
	_ backend.Copier     = (*Engine)(nil)
	_ backend.CopySource = (*Engine)(nil)
)

// manifestFile lists the files of a backup. It is written last.
const manifestFile = "BACKUP.json"

// manifest lists the files of a backup.
type manifest struct {
	Format int            `json:"format"`
	Store  string         `json:"store"`
	Commit uint64         `json:"commit"`
	Files  []manifestFact `json:"files"`
}

type manifestFact struct {
	Name   string `json:"name"` // in the journal's directory
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// manifestFormat is the manifest version that this program writes, and the newest
// that it reads.
const manifestFormat = 1

// maxManifestSize limits the size of a manifest, which has some 130 bytes per file.
const maxManifestSize = 64 << 20

// Backup implements backend.Copier. It checks and copies the journal up to a commit.
// The index is built when the copy is first opened.
func (e *Engine) Backup(ctx context.Context, dir string, o backend.BackupOptions) (backend.BackupReport, error) {
	return WriteCopy(ctx, dir, e.Copy(ctx), o)
}

// Copy implements backend.CopySource.
func (e *Engine) Copy(ctx context.Context) iter.Seq2[backend.CopyPart, error] {
	return func(yield func(backend.CopyPart, error) bool) {
		err := e.begin()
		if err == nil {
			defer e.end()
			err = e.packing.Acquire(ctx) // the set of files must not change
		}
		if err == nil {
			defer e.packing.Release()
			var plan *backend.CopyPlan
			var names []string
			if plan, names, err = e.planCopy(ctx); err == nil {
				err = e.yieldCopy(ctx, plan, names, yield)
			}
		}
		if err != nil && !errors.Is(err, errCopyEnded) {
			yield(backend.CopyPart{}, err)
		}
	}
}

// errCopyEnded is returned when the caller stops iterating.
var errCopyEnded = errors.New("the copy was stopped")

// planCopy returns the plan of a copy and the paths of its files.
func (e *Engine) planCopy(ctx context.Context) (plan *backend.CopyPlan, names []string, err error) {
	e.write.Lock() // then the index has every commit of the journal
	state := e.index.State()
	e.write.Unlock()
	if err := e.journal.Sync(state.Number); err != nil {
		return nil, nil, err
	}
	if e.damage != nil { // a partial copy would look like a complete one
		return nil, nil, e.damage
	}
	v := e.journal.FileSet()
	err = v.Check(ctx, journal.Position{Segment: state.Segment, Offset: state.Offset})
	v.Release()
	if err != nil {
		return nil, nil, err
	}
	plan = &backend.CopyPlan{Store: e.journal.StoreID(), Commit: state.Number}
	for _, s := range e.journal.Segments() {
		if s.First > max(state.Segment, 1) {
			break // created in the meantime
		}
		f := backend.CopyFile{Name: filepath.Base(s.Name), Size: s.Bytes}
		if !s.Packed && s.First == state.Segment {
			f.Size = state.Offset
		}
		names = append(names, s.Name)
		plan.Files = append(plan.Files, f)
	}
	switch info, err := e.opt.FS.Stat(e.dir.pending().Path); {
	case err == nil:
		names = append(names, e.dir.pending().Path)
		plan.Files = append(plan.Files, backend.CopyFile{Name: pendingFile, Size: info.Size})
	case !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	}
	return plan, names, nil
}

// yieldCopy yields a plan and its files.
func (e *Engine) yieldCopy(ctx context.Context, plan *backend.CopyPlan, names []string, yield func(backend.CopyPart, error) bool) error {
	if !yield(backend.CopyPart{Plan: plan}, nil) {
		return errCopyEnded
	}
	for i, name := range names {
		err := readBeginning(ctx, e.opt.FS, name, plan.Files[i].Size, func(b []byte) error {
			if !yield(backend.CopyPart{File: i, Bytes: b}, nil) {
				return errCopyEnded
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteCopy writes a copy into a directory that is new or empty: see backend.Copier.
func WriteCopy(ctx context.Context, dir string, parts iter.Seq2[backend.CopyPart, error], o backend.BackupOptions) (backend.BackupReport, error) {
	w := copyWriter{ctx: ctx, progress: o.Progress}
	err := vfs.NewDir(dir, backend.ErrExists, func(partial string) error { return w.write(partial, parts) })
	if err != nil {
		return backend.BackupReport{}, fmt.Errorf("backup to %s: %w", dir, err)
	}
	return backend.BackupReport{Commit: w.plan.Commit, Files: len(w.plan.Files), Bytes: w.total}, nil
}

// copyWriter writes the parts of a copy.
type copyWriter struct {
	ctx         context.Context
	progress    func(done, total int64)
	dir         string // of the journal
	plan        *backend.CopyPlan
	facts       []manifestFact
	file        *copiedFile // the file being written
	done, total int64
}

func (w *copyWriter) write(partial string, parts iter.Seq2[backend.CopyPart, error]) (err error) {
	w.dir = filepath.Join(partial, journalDir)
	if err := os.Mkdir(w.dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if w.file != nil {
			err = errors.Join(err, w.file.out.Close())
		}
	}()
	for part, err := range parts {
		switch {
		case err != nil:
			return err
		case w.plan == nil:
			err = w.begin(part.Plan)
		default:
			err = w.part(part)
		}
		if err != nil {
			return err
		}
	}
	if w.plan == nil {
		return errNoPlan
	}
	if err := w.upTo(len(w.plan.Files)); err != nil {
		return err
	}
	if err := vfs.OS().SyncDir(w.dir); err != nil {
		return err
	}
	m := manifest{Format: manifestFormat, Store: hex.EncodeToString(w.plan.Store[:]), Commit: w.plan.Commit, Files: w.facts}
	return writeManifest(partial, m)
}

var errNoPlan = &backend.CorruptError{File: "copy", What: "does not begin with a plan"}

// begin checks and stores the plan, which may come from another process.
func (w *copyWriter) begin(plan *backend.CopyPlan) error {
	if plan == nil {
		return errNoPlan
	}
	seen := make(map[string]bool)
	for _, f := range plan.Files {
		if !isJournalFile(f.Name) || f.Size < 0 || seen[f.Name] {
			return &backend.CorruptError{File: "copy", What: fmt.Sprintf("%.80q is not a journal file, or is listed twice", f.Name)}
		}
		seen[f.Name] = true
		w.total += f.Size
	}
	w.plan = plan
	return nil
}

// part writes bytes of a file.
func (w *copyWriter) part(p backend.CopyPart) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if err := w.upTo(p.File); err != nil {
		return err
	}
	if w.file == nil || p.File >= len(w.plan.Files) || w.file.size+int64(len(p.Bytes)) > w.plan.Files[p.File].Size {
		return &backend.CorruptError{File: "copy", What: "bytes that belong to no file of the plan"}
	}
	if err := w.file.write(p.Bytes); err != nil {
		return err
	}
	if w.done += int64(len(p.Bytes)); w.progress != nil {
		w.progress(w.done, w.total)
	}
	return nil
}

// upTo finishes the files before the given one, and creates the given one.
func (w *copyWriter) upTo(file int) error {
	for {
		if w.file == nil && len(w.facts) < len(w.plan.Files) {
			var err error
			if w.file, err = createCopied(filepath.Join(w.dir, w.plan.Files[len(w.facts)].Name)); err != nil {
				return err
			}
		}
		if len(w.facts) >= min(file, len(w.plan.Files)) {
			return nil
		}
		f := w.plan.Files[len(w.facts)]
		if w.file.size != f.Size {
			return &backend.CorruptError{File: "copy", What: fmt.Sprintf("%d bytes of %s, which has %d", w.file.size, f.Name, f.Size)}
		}
		sum, err := w.file.finish()
		w.file = nil
		if err != nil {
			return err
		}
		w.facts = append(w.facts, manifestFact{Name: f.Name, Size: f.Size, SHA256: sum})
	}
}

func writeManifest(dir string, m manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := vfs.OpenFile(filepath.Join(dir, manifestFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// copying copies files of a journal.
type copying struct {
	ctx         context.Context
	from        vfs.FS
	progress    func(done, total int64)
	done, total int64
}

// files copies the first facts[i].Size bytes of each file into the journal of a
// store, and sets the hashes in facts.
func (c *copying) files(dir string, names []string, facts []manifestFact) error {
	dir = filepath.Join(dir, journalDir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i, name := range names {
		sum, err := c.file(filepath.Join(dir, facts[i].Name), name, facts[i].Size)
		if err != nil {
			return err
		}
		facts[i].SHA256 = sum
	}
	return vfs.OS().SyncDir(dir)
}

func (c *copying) file(to, from string, size int64) (sum string, err error) {
	out, err := createCopied(to)
	if err != nil {
		return "", err
	}
	err = readBeginning(c.ctx, c.from, from, size, func(b []byte) error {
		if c.done += int64(len(b)); c.progress != nil {
			defer c.progress(c.done, c.total)
		}
		return out.write(b)
	})
	if err != nil {
		return "", errors.Join(err, out.out.Close())
	}
	return out.finish()
}

// readBeginning reads the first size bytes of a file piece by piece.
func readBeginning(ctx context.Context, fsys vfs.FS, name string, size int64, part func([]byte) error) error {
	in, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	buf := make([]byte, min(size, 1<<18))
	for at := int64(0); at < size; at += int64(len(buf)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		buf = buf[:min(size-at, int64(len(buf)))]
		if n, err := in.ReadAt(buf, at); n < len(buf) {
			if errors.Is(err, io.EOF) {
				return &backend.CorruptError{File: name, Offset: at + int64(n), What: "the file ends too early"}
			}
			return err
		}
		if err := part(buf); err != nil {
			return err
		}
	}
	return nil
}

// copiedFile is a file of a copy that is being written.
type copiedFile struct {
	out  *os.File
	hash stdhash.Hash
	size int64
}

func createCopied(name string) (*copiedFile, error) {
	out, err := vfs.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return &copiedFile{out: out, hash: sha256.New()}, nil
}

func (f *copiedFile) write(b []byte) error {
	f.hash.Write(b)
	n, err := f.out.Write(b)
	f.size += int64(n)
	return err
}

// finish makes the file durable and returns its hash.
func (f *copiedFile) finish() (sum string, err error) {
	return hex.EncodeToString(f.hash.Sum(nil)), errors.Join(f.out.Sync(), f.out.Close())
}

// isJournalFile reports whether a file in the journal's directory is needed to read the journal.
func isJournalFile(name string) bool { return name == pendingFile || journal.IsFileName(name) }
