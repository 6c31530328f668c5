package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/backend"
)

var _ backend.Copier = (*Engine)(nil)

// manifestFile says in a backup what it consists of. It is written last.
const manifestFile = "BACKUP.json"

// partialPattern names the directory of a copy that is not complete.
const partialPattern = ".partial-*"

// manifest is what a backup consists of.
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

// manifestFormat is the newest that this program reads, and writes.
const manifestFormat = 1

// mostManifest bounds the size of a manifest: it takes some 130 bytes a file.
const mostManifest = 64 << 20

// Backup implements backend.Copier. It copies the journal up to a commit, from
// which the index is made when the copy is first opened. What it copies is checked
// before.
func (e *Engine) Backup(ctx context.Context, dir string, o backend.BackupOptions) (backend.BackupReport, error) {
	if err := e.begin(); err != nil {
		return backend.BackupReport{}, err
	}
	defer e.end()
	report, err := e.backup(ctx, dir, o)
	if err != nil {
		return report, fmt.Errorf("backup to %s: %w", dir, err)
	}
	return report, nil
}

func (e *Engine) backup(ctx context.Context, dir string, o backend.BackupOptions) (backend.BackupReport, error) {
	e.packing.Lock() // files stay what they are
	defer e.packing.Unlock()
	var report backend.BackupReport
	e.write.Lock() // no commit is in the journal and not in the index
	state := e.index.State()
	e.write.Unlock()
	if err := e.journal.Sync(state.Number); err != nil {
		return report, err
	}
	if e.damage != nil { // a copy of what can be read would pass for the whole
		return report, e.damage
	}
	v := e.journal.View()
	err := v.Check(ctx, journal.Position{Segment: state.Segment, Offset: state.Offset})
	v.Release()
	if err != nil {
		return report, err
	}
	id := e.journal.StoreID()
	m := manifest{Format: manifestFormat, Store: hex.EncodeToString(id[:]), Commit: state.Number}
	var names []string
	for _, s := range e.journal.Segments() {
		if s.First > max(state.Segment, 1) {
			break // begun since
		}
		f := manifestFact{Name: filepath.Base(s.Name), Size: s.Bytes}
		if !s.Packed && s.First == state.Segment {
			f.Size = state.Offset
		}
		names = append(names, s.Name)
		m.Files = append(m.Files, f)
		report.Bytes += f.Size
	}
	switch info, err := e.opt.FS.Stat(e.pendingPath()); {
	case err == nil:
		names = append(names, e.pendingPath())
		m.Files = append(m.Files, manifestFact{Name: pendingFile, Size: info.Size})
		report.Bytes += info.Size
	case !errors.Is(err, fs.ErrNotExist):
		return report, err
	}
	report.Commit, report.Files = m.Commit, len(m.Files)
	c := copying{ctx: ctx, from: e.opt.FS, progress: o.Progress, total: report.Bytes}
	return report, complete(dir, func(partial string) error {
		if err := c.files(partial, names, m.Files); err != nil {
			return err
		}
		return writeManifest(partial, m)
	})
}

// complete makes a directory under another name and gives it its own when it is
// durable.
func complete(dir string, fill func(partial string) error) (err error) {
	dir = filepath.Clean(dir)
	if err := requireNew(dir); err != nil {
		return err
	}
	above := filepath.Dir(dir)
	if err := os.MkdirAll(above, 0o700); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(above, filepath.Base(dir)+partialPattern)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	if err := fill(partial); err != nil {
		return err
	}
	if err := vfs.OS().SyncDir(partial); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // it is empty
		return err
	}
	if err := os.Rename(partial, dir); err != nil {
		return err
	}
	return vfs.OS().SyncDir(above)
}

// requireNew refuses a directory that has anything in it.
func requireNew(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("the directory is not empty: %w", backend.ErrExists)
	}
	return nil
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

// files copies the beginnings of files into the journal of a store, as long as the
// facts say, and notes their hashes there.
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
	in, err := c.from.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := vfs.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	buf := make([]byte, min(size, 1<<20))
	for at := int64(0); at < size; at += int64(len(buf)) {
		if c.ctx.Err() != nil {
			return "", context.Cause(c.ctx)
		}
		buf = buf[:min(size-at, int64(len(buf)))]
		if n, err := in.ReadAt(buf, at); n < len(buf) {
			if errors.Is(err, io.EOF) {
				return "", &backend.CorruptError{File: from, Offset: at + int64(n), What: "the file ends too early"}
			}
			return "", err
		}
		hash.Write(buf)
		if _, err := out.Write(buf); err != nil {
			return "", err
		}
		c.done += int64(len(buf))
		if c.progress != nil {
			c.progress(c.done, c.total)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), out.Sync()
}
