package usage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/usage/prices"
	"github.com/lineage-store/lineage/structure"
)

// Prune is for [lineage.Options.Prune]: a collection then removes from the index in a directory what is no longer in the store,
// such as the names of projects and models of deleted threads. An index that cannot be pruned is removed, which is no error: the next
// report builds it again.
func Prune(ctx context.Context, dir string, engine backend.Engine) error {
	store, starts := lineage.New(engine), prices.Default().Starts()
	err := derivedfile.Prune(ctx, store, dir, config(), derivedfile.Updating{Apply: applier(starts), Limit: windowLimit}, derivedfile.Pruning{
		Prepare: func(ctx context.Context, q derivedfile.Querier, state backend.Snapshot) (func(context.Context, *derivedfile.Writer) error, error) {
			cut, err := cutRuns(ctx, q, state)
			return func(ctx context.Context, f *derivedfile.Writer) error { return newWriter(f, starts).prune(ctx, cut) }, err
		},
	})
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return derivedfile.Remove(store, dir, config())
}

// runStep is a step of a run, which has its number in the file.
type runStep struct{ run, step int64 }

// pageOfRuns is the number of runs that are read at once.
const pageOfRuns = 1000

// cutRuns returns the runs with sightings or counters of which a state has only a beginning, and the last step of that. Column "last" of
// runs does not say: this package leaves it out.
func cutRuns(ctx context.Context, q derivedfile.Querier, state backend.Snapshot) (cut []runStep, err error) {
	type row struct {
		runStep
		id []byte
	}
	for after := int64(0); ; {
		var page []row
		err := each(ctx, q, func(scan func(...any) error) error {
			var r row
			err := scan(&r.run, &r.id, &r.step)
			page = append(page, r)
			return err
		}, `SELECT r.number, r.id, MAX(IFNULL((SELECT MAX(s.last) FROM sightings s WHERE s.run = r.number), 0), IFNULL((SELECT MAX(c.first) FROM counters c WHERE c.run = r.number), 0))
			FROM runs r WHERE r.number > ? ORDER BY r.number LIMIT ?`, after, pageOfRuns)
		if err != nil || len(page) == 0 {
			return cut, err
		}
		for _, r := range page {
			if after = r.run; r.step == 0 {
				continue
			}
			if len(r.id) != len(structure.RunID{}) {
				return nil, fmt.Errorf("run %x: %w", r.id, derivedfile.ErrUseless)
			}
			last, err := state.Last(ctx, structure.RunID(r.id))
			if derivedfile.IsGone(err) { // it is in table dead
				continue
			}
			if err != nil {
				return nil, err
			}
			if int64(last.Seq) < r.step {
				cut = append(cut, runStep{r.run, int64(last.Seq)})
			}
		}
	}
}

// prune removes what only dead steps of runs state. Nothing of it is visible, so the totals do not have it.
func (f *writer) prune(ctx context.Context, cut []runStep) error {
	for _, r := range cut {
		if err := f.Exec(ctx, `INSERT OR IGNORE INTO temp.dead VALUES (?, ?)`, r.run, r.step); err != nil {
			return err
		}
	}
	visible := false
	if _, err := f.Get(ctx, `SELECT EXISTS (SELECT 1 FROM temp.dead d JOIN runs r ON r.number = d.run WHERE r.reached > d.after)`, nil, &visible); err != nil {
		return err
	}
	if visible {
		return fmt.Errorf("a run is visible that the store does not have: %w", derivedfile.ErrUseless)
	}
	removed, err := f.pruneSightings(ctx)
	if err != nil {
		return err
	}
	if err := f.pruneKeys(ctx, removed); err != nil {
		return err
	}
	if err := f.pruneCounters(ctx); err != nil {
		return err
	}
	return f.pruneModels(ctx)
}

// pruneSightings removes sightings in dead steps. It returns the numbers of the rows of which nothing is left.
func (f *writer) pruneSightings(ctx context.Context) (removed map[int64]bool, err error) {
	type row struct {
		number, run, after int64
		answers            []byte
	}
	var rows []row
	err = f.Each(ctx, func(scan func(...any) error) error {
		var r row
		err := scan(&r.number, &r.run, &r.after, &r.answers)
		rows = append(rows, r)
		return err
	}, `SELECT s.number, s.run, d.after, CASE WHEN s.first <= d.after THEN s.answers END FROM temp.dead d JOIN sightings s ON s.run = d.run AND s.last > d.after`)
	if err != nil {
		return nil, err
	}
	removed = make(map[int64]bool, len(rows))
	for _, r := range rows {
		var left []*sighting
		err := decodeSightings(r.run, r.answers, func(s *sighting) error {
			if s.seq <= r.after {
				left = append(left, new(*s))
			}
			return nil
		})
		switch {
		case err != nil:
		case len(left) == 0:
			removed[r.number] = true
			err = f.Exec(ctx, `DELETE FROM sightings WHERE number = ?`, r.number)
		default:
			err = f.Exec(ctx, `UPDATE sightings SET last = ?, answers = ? WHERE number = ?`, left[len(left)-1].seq, appendSightings(nil, left), r.number)
		}
		if err != nil {
			return nil, err
		}
	}
	return removed, nil
}

// pruneKeys removes what leads to removed rows of sightings: later rows may get their numbers.
func (f *writer) pruneKeys(ctx context.Context, removed map[int64]bool) error {
	if len(removed) == 0 {
		return nil
	}
	changed := make(map[int64][]keyed)
	err := f.Each(ctx, func(scan func(...any) error) error {
		var start int64
		var b []byte
		if err := scan(&start, &b); err != nil {
			return err
		}
		all, err := decodeKeys(start, b)
		before := len(all)
		if all = slices.DeleteFunc(all, func(k keyed) bool { return removed[k.row] }); len(all) < before {
			changed[start] = all
		}
		return err
	}, `SELECT start, sightings FROM keys`)
	for start, all := range changed {
		switch {
		case err != nil:
		case len(all) == 0 && start > 0: // the first row stays: every hash has the row before it
			err = f.Exec(ctx, `DELETE FROM keys WHERE start = ?`, start)
		default:
			err = f.storeKeys(ctx, start, all)
		}
	}
	return err
}

// pruneCounters removes counters in dead steps.
func (f *writer) pruneCounters(ctx context.Context) error {
	type row struct {
		run, first, after int64
		totals            []byte
	}
	var cut []row
	err := f.Each(ctx, func(scan func(...any) error) error {
		var r row
		err := scan(&r.run, &r.first, &r.after, &r.totals)
		cut = append(cut, r)
		return err
	}, `SELECT c.run, c.first, d.after, c.totals FROM temp.dead d JOIN counters c ON c.run = d.run AND c.first <= d.after`)
	if err != nil {
		return err
	}
	for _, r := range cut {
		all, err := decodeCounters(r.first, r.totals)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(all, func(c counter) bool { return c.seq > r.after })
		if err := f.Exec(ctx, `UPDATE counters SET totals = ? WHERE run = ? AND first = ?`, appendCounters(nil, left), r.run, r.first); err != nil {
			return err
		}
	}
	return f.Exec(ctx, `DELETE FROM counters WHERE EXISTS (SELECT 1 FROM temp.dead d WHERE d.run = counters.run AND counters.first > d.after)`)
}

// pruneModels removes models that no sighting has.
func (f *writer) pruneModels(ctx context.Context) error {
	used := make(map[int64]bool)
	err := f.Each(ctx, func(scan func(...any) error) error {
		var run int64
		var answers []byte
		if err := scan(&run, &answers); err != nil {
			return err
		}
		return decodeSightings(run, answers, func(s *sighting) error {
			used[s.model] = true
			return nil
		})
	}, `SELECT run, answers FROM sightings`)
	if err != nil {
		return err
	}
	var unused []int64
	err = f.Each(ctx, func(scan func(...any) error) error {
		var number int64
		err := scan(&number)
		if !used[number] {
			unused = append(unused, number)
		}
		return err
	}, `SELECT number FROM models`)
	for _, number := range unused {
		if err == nil {
			err = f.Exec(ctx, `DELETE FROM models WHERE number = ?`, number)
		}
	}
	return err
}
