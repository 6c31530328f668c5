package usage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Prune is for [lineage.Options.Prune]: a collection then removes from the index in a directory the names that only deleted threads and
// collected messages state: those of users, projects, branches and models. Numbers of tokens stay. An index that cannot be pruned is
// removed, which is no error: the next report builds it again.
func Prune(ctx context.Context, dir string, engine backend.Engine) error {
	if !Exists(dir) {
		return nil
	}
	store := lineage.New(engine)
	if err := prune(ctx, store, dir); err != nil {
		return derivedfile.Remove(store, dir, config())
	}
	return nil
}

func prune(ctx context.Context, store *lineage.Store, dir string) (err error) {
	x, err := Open(ctx, store, dir, Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := x.Update(ctx); err != nil { // removes the names of threads
		return err
	}
	return x.file.With(func(db *sql.DB) error {
		ends, err := collectedEnds(ctx, store, db)
		if err != nil {
			return err
		}
		if err := derivedfile.Patiently(ctx, func() error { return pruneModels(ctx, db, ends) }); err != nil {
			return err
		}
		return derivedfile.Checkpoint(ctx, db)
	})
}

// pageOfRuns is the number of runs that are read at once.
const pageOfRuns = 1000

// collectedEnds returns, for runs with sightings of which the store does not have all, the last step that it has: 0 if it has none. A
// collected step does not come back.
func collectedEnds(ctx context.Context, store *lineage.Store, q derivedfile.Querier) (map[int64]int64, error) {
	type row struct {
		number, last int64
		id           []byte
	}
	ends := make(map[int64]int64)
	for after := int64(0); ; {
		var page []row
		err := each(ctx, q, func(scan func(...any) error) error {
			var r row
			err := scan(&r.number, &r.id, &r.last)
			page = append(page, r)
			return err
		}, `SELECT r.number, r.id, IFNULL((SELECT MAX(s.last) FROM sightings s WHERE s.run = r.number), 0) FROM runs r WHERE r.number > ? ORDER BY r.number LIMIT ?`, after, pageOfRuns)
		if err != nil || len(page) == 0 {
			return ends, err
		}
		err = derivedfile.InState(ctx, store, func(state backend.Snapshot) error {
			for _, r := range page {
				if r.last == 0 {
					continue
				}
				if len(r.id) != len(structure.RunID{}) {
					return fmt.Errorf("run %x: %w", r.id, derivedfile.ErrUseless)
				}
				last, err := state.Last(ctx, structure.RunID(r.id))
				if err != nil && !derivedfile.IsGone(err) {
					return err
				}
				if int64(last.Seq) < r.last {
					ends[r.number] = int64(last.Seq)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		after = page[len(page)-1].number
	}
}

// pruneModels removes the models that only collected sightings have.
func pruneModels(ctx context.Context, db *sql.DB, ends map[int64]int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	used := make(map[int64]bool)
	err = each(ctx, tx, func(scan func(...any) error) error {
		var run int64
		var answers []byte
		if err := scan(&run, &answers); err != nil {
			return err
		}
		end, cut := ends[run]
		return decodeSightings(run, answers, func(s *sighting) error {
			if !cut || s.seq <= end {
				used[s.model] = true
			}
			return nil
		})
	}, `SELECT run, answers FROM sightings`)
	if err != nil {
		return err
	}
	var unused []int64
	err = each(ctx, tx, func(scan func(...any) error) error {
		var number int64
		err := scan(&number)
		if !used[number] {
			unused = append(unused, number)
		}
		return err
	}, `SELECT number FROM models`)
	if err != nil {
		return err
	}
	for _, number := range unused {
		if _, err := tx.ExecContext(ctx, `DELETE FROM models WHERE number = ?`, number); err != nil {
			return err
		}
	}
	return tx.Commit()
}
