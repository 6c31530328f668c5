// Package usage reports what the conversations of a store cost: tokens, requests and money.
//
// An answer of a model counts once, wherever copies of it lie: answers are told apart by the provider's id, those without
// one by their message. What a source does not state is unknown, and not zero.
//
// The figures are in a SQLite file next to the journal. A report first brings them up to date, and rebuilds them if they
// are missing or damaged, so the file can be deleted at any time.
package usage

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/usage/prices"
)

// FileName is the name of the file in a store's directory.
const FileName = "usage.db"

// Options configure an index.
type Options struct {
	// Progress, when not nil, is called during updates with the number of read commits.
	Progress func(done, total uint64)
}

// Index is the usage index of a store. It is safe for concurrent use.
type Index struct {
	file    *derivedfile.File
	store   *lineage.Store
	options Options
}

// Open opens the index of the store in a directory, without updating it. Close the index before the store.
func Open(ctx context.Context, store *lineage.Store, dir string, o Options) (*Index, error) {
	file, err := derivedfile.Open(ctx, store, dir, config())
	return &Index{file: file, store: store, options: o}, err
}

// config describes the file.
func config() derivedfile.Config {
	return derivedfile.Config{Name: FileName, Label: "usage", Format: format, Schema: schema}
}

// Exists reports whether a directory has an index, because someone has asked for the usage of its store before.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, FileName))
	return err == nil
}

// Close closes the index. The file stays.
func (x *Index) Close() error { return x.file.Close() }

// windowLimit is the number of changed subjects and records at which a transaction ends. It is more than the follower's
// default because an answer is a short row.
var windowLimit = 50_000

// Update brings the index up to date.
func (x *Index) Update(ctx context.Context) error {
	starts := prices.Default().Starts()
	return x.file.Update(ctx, derivedfile.Updating{Apply: applier(starts), Limit: windowLimit, Progress: x.options.Progress})
}

// Report brings the index up to date and reports.
func (x *Index) Report(ctx context.Context, q Query) (*Report, error) {
	if q.Prices == nil {
		q.Prices = prices.Default()
	}
	if q.Zone == nil {
		q.Zone = time.UTC
	}
	for _, key := range q.By {
		if !slices.Contains(Keys, key) {
			return nil, fmt.Errorf("report by %.64q: %w", string(key), lineage.ErrInvalid)
		}
	}
	if err := x.Update(ctx); err != nil {
		return nil, err
	}
	var report *Report
	err := x.file.Repaired(ctx, func() error {
		if report != nil {
			if err := x.Update(ctx); err != nil { // the file was replaced
				return err
			}
		}
		report = &Report{Unpriced: make(map[string]int64), Prices: q.Prices}
		return x.file.With(func(db *sql.DB) error {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
			if err != nil {
				return err
			}
			defer tx.Rollback()
			r := &reporter{tx: tx, q: &q, report: report, rows: make(map[string]*Row), models: make(map[int64]modelName), attributions: newAttributions(tx)}
			if q.CountedIn != nil {
				r.countedIn = make(map[string]bool, len(q.CountedIn))
				for _, id := range q.CountedIn {
					r.countedIn[id.String()] = true
				}
			}
			return r.run(ctx)
		})
	})
	return report, err
}

func (r *reporter) run(ctx context.Context) error {
	if err := r.readModels(ctx); err != nil {
		return err
	}
	direct, err := r.fromTotals(ctx)
	if err == nil && direct {
		err = r.readTotals(ctx)
	} else if err == nil {
		err = r.readSightings(ctx)
	}
	if err != nil {
		return err
	}
	for _, row := range r.rows {
		r.report.Total.add(&row.Figures) // before settling: a record may add to the answers of another row
		row.settle()
		r.report.Rows = append(r.report.Rows, *row)
	}
	r.report.Total.settle()
	slices.SortFunc(r.report.Rows, func(a, b Row) int {
		if c := slices.Compare(a.Keys, b.Keys); c != 0 {
			return c
		}
		return boolInt(a.Shared) - boolInt(b.Shared)
	})
	return nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
