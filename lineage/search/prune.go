package search

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Prune is for [lineage.Options.Prune]: a collection then keeps in the index in a directory what is still in the store.
// An index without most of the commits is not worth it, and is removed as without Prune.
func Prune(ctx context.Context, dir string, engine backend.Engine) error {
	return derivedfile.Prune(ctx, lineage.New(engine), dir, fileConfig(),
		derivedfile.Updating{Apply: apply, Limit: searched.WindowLimit},
		// All terms are written again, without those of deleted texts.
		derivedfile.Pruning{Prepare: preparePruning, Purge: `INSERT INTO terms (terms) VALUES ('optimize')`, PurgeSome: `INSERT INTO terms (terms, rank) VALUES ('merge', -?)`})
}

// summaryText is the run of a summary, and its text: 0 if it has no words. Several summaries may have one run.
type summaryText struct{ run, text int64 }

// preparePruning finds the summaries that a state has, with their texts: their runs may have had other texts.
func preparePruning(ctx context.Context, q derivedfile.Querier, state backend.Snapshot) (func(context.Context, *derivedfile.Writer) error, error) {
	runs := make(map[structure.ContextID]map[structure.SummaryID]int64)
	err := derivedfile.Each(ctx, q, func(scan func(...any) error) error {
		var run int64
		var key []byte
		if err := scan(&run, &key); err != nil {
			return err
		}
		context, id, ok := searched.SummaryOf(key)
		if !ok {
			return fmt.Errorf("run %x: %w", key, derivedfile.ErrUseless)
		}
		if runs[context] == nil {
			runs[context] = make(map[structure.SummaryID]int64)
		}
		runs[context][id] = run
		return nil
	}, `SELECT number, id FROM runs WHERE length(id) > 16`)
	if err != nil {
		return nil, err
	}
	var living []summaryText
	for context, runOf := range runs {
		for s, err := range state.Summaries(ctx, context) {
			if err != nil {
				return nil, err
			}
			run, known := runOf[s.ID]
			if !known {
				continue
			}
			text := searched.TextOf(s.Content, form.Plain)
			of := summaryText{run: run}
			if err := q.QueryRowContext(ctx, `SELECT IFNULL(MAX(number), 0) FROM texts WHERE id = ?`, text[:]).Scan(&of.text); err != nil {
				return nil, err
			}
			living = append(living, of)
		}
	}
	return func(ctx context.Context, f *derivedfile.Writer) error { return prune(ctx, f, living) }, nil
}

// prune removes the usages of dead steps and summaries, and then what nothing uses.
func prune(ctx context.Context, f *derivedfile.Writer, living []summaryText) error {
	for _, statement := range []string{
		`CREATE TEMP TABLE IF NOT EXISTS living (run INTEGER NOT NULL, text INTEGER NOT NULL, PRIMARY KEY (run, text)) WITHOUT ROWID`, `DELETE FROM temp.living`,
		`CREATE TEMP TABLE IF NOT EXISTS unused (text INTEGER PRIMARY KEY)`, `DELETE FROM temp.unused`,
	} {
		if err := f.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for _, s := range living {
		if err := f.Exec(ctx, `INSERT OR IGNORE INTO temp.living VALUES (?, ?)`, s.run, s.text); err != nil {
			return err
		}
	}
	for _, statement := range []string{
		`INSERT INTO temp.dead SELECT number, 0 FROM runs WHERE length(id) > 16 AND number NOT IN (SELECT run FROM temp.living)`,
		`DELETE FROM usages WHERE EXISTS (SELECT 1 FROM temp.dead d WHERE d.run = usages.run AND usages.seq > d.after)
			OR EXISTS (SELECT 1 FROM temp.living l WHERE l.run = usages.run) AND NOT EXISTS (SELECT 1 FROM temp.living l WHERE l.run = usages.run AND l.text = usages.text)`,
		`INSERT INTO temp.unused SELECT number FROM texts WHERE NOT EXISTS (SELECT 1 FROM usages WHERE text = number)`,
		`DELETE FROM terms WHERE rowid IN (SELECT text FROM temp.unused)`,
		`DELETE FROM vectors WHERE text IN (SELECT text FROM temp.unused)`,
		`DELETE FROM pending WHERE text IN (SELECT text FROM temp.unused)`,
		`DELETE FROM texts WHERE number IN (SELECT text FROM temp.unused)`,
		`DELETE FROM roles WHERE number NOT IN (SELECT role FROM usages)`,
		`UPDATE meta SET spans = (SELECT IFNULL(SUM(IFNULL((SELECT after FROM temp.dead WHERE run = number), last)), 0) FROM runs WHERE length(id) = 16)`,
	} {
		if err := f.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
