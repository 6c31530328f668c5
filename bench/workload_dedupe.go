package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/formats"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

const (
	workDedupe = "bytes of an archive"
	// The compared sizes of an archive.
	dedupeRaw     = "raw files"
	dedupeZstd    = "zstd -19 --long=27"
	dedupeFresh   = nameLineage + ", as imported"
	dedupeFast    = nameLineage + ", packed"
	dedupePacked  = nameLineage + ", packed densely"
	dedupeUnique  = "distinct content, uncompressed"
	dedupeLogical = "all messages of all histories"
)

// dedupe imports each archive into a new store and compares its total size on disk with the files
// and with other stores.
func (r *run) dedupe(ctx context.Context) error {
	if len(r.config.Archives) == 0 {
		r.skip(Skipped{Workload: "dedupe", Why: "no archive was named"})
	}
	for _, path := range r.config.Archives {
		if err := r.dedupeOf(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (r *run) dedupeOf(ctx context.Context, path string) error {
	name := filepath.Base(path)
	r.config.Progress("dedupe of " + name)
	bytes := func(system string, n int64) {
		r.fact(Row{Workload: workDedupe, System: system, Archive: name, Unit: unitBytes, Value: float64(n)})
	}
	dir, err := r.directory("dedupe")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	raw, file, err := joined(path, filepath.Join(dir, "raw"))
	if err != nil {
		return err
	}
	bytes(dedupeRaw, raw)
	if n, err := zstdOf(ctx, file); err == nil {
		bytes(dedupeZstd, n)
	} else {
		r.skip(Skipped{Workload: "dedupe", System: dedupeZstd, Why: err.Error()})
	}

	storeDir := filepath.Join(dir, "store")
	s, err := lineage.Open(ctx, storeDir, lineage.Options{Durability: lineage.Normal})
	if err != nil {
		return err
	}
	report, err := importer.Import(ctx, s, archive.Path(path), importer.Options{})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	stats, err := s.Stats(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	bytes(dedupeLogical, int64(stats.LogicalBytes))
	bytes(dedupeUnique, int64(stats.UniqueBytes))
	fresh, err := closedSize(ctx, &s, storeDir)
	if err != nil {
		return err
	}
	bytes(dedupeFresh, fresh)
	if err := s.Close(); err != nil {
		return err
	}
	if err := r.packed(ctx, name, storeDir, bytes); err != nil {
		return err
	}
	n, err := sqliteOf(ctx, path, filepath.Join(dir, "sqlite"))
	if err != nil {
		return err
	}
	bytes(nameSQLite, n)
	r.fact(Row{Workload: "messages of an archive", System: nameLineage, Archive: name, Unit: "messages", Value: float64(report.Messages)})
	return nil
}

// packed measures packed copies of a store.
func (r *run) packed(ctx context.Context, name, storeDir string, bytes func(system string, n int64)) error {
	for _, p := range []struct {
		system string
		dense  bool
	}{{dedupeFast, false}, {dedupePacked, true}} {
		packedDir, err := r.directory("packed")
		if err != nil {
			return err
		}
		n, err := packedCopy(ctx, storeDir, packedDir, p.dense)
		if err == nil {
			bytes(p.system, n)
			err = r.cold(ctx, p.system, name, packedDir)
		}
		if err := errors.Join(err, os.RemoveAll(packedDir)); err != nil {
			return err
		}
	}
	return nil
}

// closedSize closes a store, measures it, and reopens it.
func closedSize(ctx context.Context, s **lineage.Store, dir string) (int64, error) {
	if err := (*s).Close(); err != nil {
		return 0, err
	}
	n, err := diskUse(dir)
	if err != nil {
		return 0, err
	}
	*s, err = lineage.Open(ctx, dir, lineage.Options{Durability: lineage.Normal})
	return n, err
}

// packedCopy packs a copy of a closed store and returns its size when closed.
func packedCopy(ctx context.Context, from, to string, dense bool) (int64, error) {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return 0, err
	}
	s, err := lineage.Open(ctx, to, lineage.Options{Durability: lineage.Normal})
	if err != nil {
		return 0, err
	}
	_, err = s.Pack(ctx, lineage.PackOptions{All: true, Dense: dense})
	if err := errors.Join(err, s.Close()); err != nil {
		return 0, err
	}
	return diskUse(to)
}

// joined concatenates a file, or the files of a folder, and returns the size.
func joined(path, to string) (int64, string, error) {
	out, err := os.Create(to)
	if err != nil {
		return 0, "", err
	}
	defer out.Close()
	var total int64
	err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.EqualFold(d.Name(), "LICENSE") {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := io.Copy(out, f)
		total += n
		return err
	})
	return total, to, err
}

// zstdOf compresses a file with the zstd program at its highest level.
func zstdOf(ctx context.Context, path string) (int64, error) {
	program, err := exec.LookPath("zstd")
	if err != nil {
		return 0, errors.New("there is no zstd program here")
	}
	to := path + ".zst"
	if out, err := exec.CommandContext(ctx, program, "-q", "-f", "-19", "--long=27", path, "-o", to).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("zstd: %w: %s", err, out)
	}
	info, err := os.Stat(to)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// sqliteOf inserts an archive into the documented schema, each message of each conversation once,
// and returns the size of the closed file.
func sqliteOf(ctx context.Context, path, dir string) (n int64, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, err
	}
	opened, err := sqliteSystem(normal).open(ctx, dir)
	if err != nil {
		return 0, err
	}
	s := opened.(*sqlStore)
	var damage *archive.Damage
	for c, err := range archive.Read(ctx, archive.Path(path), archive.ReadOptions{Formats: formats.All()}) {
		if errors.As(err, &damage) {
			continue
		}
		if err == nil {
			err = s.insertConversation(ctx, c)
		}
		if err != nil {
			return 0, errors.Join(err, s.close())
		}
	}
	if err := s.close(); err != nil {
		return 0, err
	}
	return diskUse(dir)
}

// archiveGoals compares each packed archive with zstd.
func (r *Report) archiveGoals() []Goal {
	zstd := map[string]float64{}
	for _, row := range r.Rows {
		if row.Workload == workDedupe && row.System == dedupeZstd {
			zstd[row.Archive] = row.Value
		}
	}
	var all []Goal
	for _, row := range r.Rows {
		if row.Workload == workDedupe && row.System == dedupePacked && zstd[row.Archive] > 0 {
			all = append(all, Goal{
				Goal: "size of a real archive against zstd -19 --long=27 of its files", Limit: 1, Ratio: row.Value / zstd[row.Archive],
				Measured: row.Archive + ": " + strconv.FormatFloat(row.Value, 'f', 0, 64) + " bytes",
			})
		}
	}
	return all
}
