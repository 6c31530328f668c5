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
// An index with less than half of the steps is not worth it, and is removed as without Prune.
func Prune(ctx context.Context, dir string, engine backend.Engine) error {
	return derivedfile.Prune(ctx, lineage.New(engine), dir, fileConfig(),
		derivedfile.Updating{Apply: apply, Limit: searched.WindowLimit},
		derivedfile.Pruning{
			Dead: dropDeadUsages, Prepare: prepareSummaries, Rest: dropUnused,
			// All terms are written again, without those of deleted texts.
			Purge: `INSERT INTO terms (terms) VALUES ('optimize')`, PurgeSome: `INSERT INTO terms (terms, rank) VALUES ('merge', -?)`,
		})
}

// usageKeys are the texts and runs of usages, and textKeys the ids of texts.
var (
	usageKeys = derivedfile.Keys{
		First: []any{int64(0), int64(0)},
		Next: `SELECT text, run FROM (SELECT text, run FROM usages WHERE (text, run) > (?1, ?2) ORDER BY text, run LIMIT ?3)
			ORDER BY text DESC, run DESC LIMIT 1`,
	}
	textKeys = derivedfile.Keys{
		First: []any{[]byte{}}, Next: `SELECT id FROM (SELECT id FROM texts WHERE id > ?1 ORDER BY id LIMIT ?2) ORDER BY id DESC LIMIT 1`,
	}
)

// dropDeadUsages removes the usages of dead steps. It notes the texts of summaries, and the roles that are used.
func dropDeadUsages(ctx context.Context, p *derivedfile.Pruner) error {
	err := p.Step(ctx, nil,
		`CREATE TEMP TABLE summarized (run INTEGER NOT NULL, text INTEGER NOT NULL, PRIMARY KEY (run, text)) WITHOUT ROWID`,
		`CREATE TEMP TABLE speaking (role INTEGER PRIMARY KEY)`)
	if err != nil {
		return err
	}
	const those = ` FROM usages WHERE (text, run) > (?1, ?2) AND (text, run) <= (?3, ?4)`
	return p.InSteps(ctx, usageKeys,
		`DELETE`+those+` AND EXISTS (SELECT 1 FROM temp.dead d WHERE d.run = usages.run AND usages.seq > d.after)`,
		fmt.Sprintf(`INSERT OR IGNORE INTO temp.summarized SELECT run, text`+those+` AND role IN (SELECT number FROM roles WHERE kind = %d)`, searched.Summary),
		`INSERT OR IGNORE INTO temp.speaking SELECT DISTINCT role`+those)
}

// summaryText is the run of a summary, and its text: 0 if it has no words. Several summaries may have one run.
type summaryText struct{ run, text int64 }

// pageOfSummaries is the number of summaries that are read at once.
const pageOfSummaries = 1000

// prepareSummaries finds the summaries that a state has, with their texts: their runs may have had other texts.
func prepareSummaries(ctx context.Context, q derivedfile.Querier, state backend.Snapshot) (func(context.Context, *derivedfile.Writer, bool) error, error) {
	var living []summaryText
	var of structure.ContextID
	runs := make(map[structure.SummaryID]int64) // those of one context
	read := func() error {
		if len(runs) == 0 {
			return nil
		}
		for s, err := range state.Summaries(ctx, of) {
			if err != nil {
				return err
			}
			run, known := runs[s.ID]
			if !known {
				continue
			}
			text := searched.TextOf(s.Content, form.Plain)
			found := summaryText{run: run}
			if err := q.QueryRowContext(ctx, `SELECT IFNULL(MAX(number), 0) FROM texts WHERE id = ?`, text[:]).Scan(&found.text); err != nil {
				return err
			}
			living = append(living, found)
		}
		clear(runs)
		return nil
	}
	for after, more := []byte{searched.OfSummary}, true; more; {
		type row struct {
			run int64
			key []byte
		}
		var page []row
		err := derivedfile.Each(ctx, q, func(scan func(...any) error) error {
			var r row
			err := scan(&r.run, &r.key)
			page = append(page, r)
			return err
		}, `SELECT number, id FROM runs WHERE id > ? AND id < ? AND length(id) > 16 ORDER BY id LIMIT ?`, after, []byte{searched.OfSummary + 1}, pageOfSummaries)
		if err != nil {
			return nil, err
		}
		more = len(page) == pageOfSummaries
		for _, r := range page {
			context, id, ok := searched.SummaryOf(r.key)
			if !ok {
				return nil, fmt.Errorf("run %x: %w", r.key, derivedfile.ErrUseless)
			}
			if context != of {
				if err := read(); err != nil {
					return nil, err
				}
			}
			of, runs[id], after = context, r.run, r.key
		}
	}
	if err := read(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *derivedfile.Writer, alone bool) error {
		return settlePruned(ctx, f, living, alone)
	}, nil
}

// settlePruned removes the usages of summaries other than some, and counts the steps. The runs of dead summaries, which have no words,
// are removed if they got no usages meanwhile.
func settlePruned(ctx context.Context, f *derivedfile.Writer, living []summaryText, alone bool) error {
	for _, statement := range []string{
		`CREATE TEMP TABLE IF NOT EXISTS living (run INTEGER NOT NULL, text INTEGER NOT NULL, PRIMARY KEY (run, text)) WITHOUT ROWID`, `DELETE FROM temp.living`,
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
	statements := []string{
		`DELETE FROM usages WHERE (text, run) IN (SELECT s.text, s.run FROM temp.summarized s WHERE NOT EXISTS (SELECT 1 FROM temp.living l WHERE l.run = s.run AND l.text = s.text))`,
		`UPDATE meta SET spans = (SELECT IFNULL(SUM(last), 0) FROM runs WHERE length(id) = 16)`,
	}
	if alone {
		statements = append(statements, `DELETE FROM runs WHERE length(id) > 16 AND number NOT IN (SELECT run FROM temp.living)`)
	}
	for _, statement := range statements {
		if err := f.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// dropUnused removes texts and roles that nothing uses.
func dropUnused(ctx context.Context, p *derivedfile.Pruner) error {
	if err := p.Step(ctx, nil, `CREATE TEMP TABLE unused (text INTEGER PRIMARY KEY)`); err != nil {
		return err
	}
	const those = ` FROM texts WHERE id > ?1 AND id <= ?2`
	err := p.InSteps(ctx, textKeys,
		`DELETE FROM temp.unused`,
		`INSERT INTO temp.unused SELECT number`+those+` AND NOT EXISTS (SELECT 1 FROM usages WHERE text = number)`,
		`DELETE FROM terms WHERE rowid IN (SELECT text FROM temp.unused)`,
		`DELETE FROM vectors WHERE text IN (SELECT text FROM temp.unused)`,
		`DELETE FROM pending WHERE text IN (SELECT text FROM temp.unused)`,
		`DELETE`+those+` AND number IN (SELECT text FROM temp.unused)`)
	if err != nil {
		return err
	}
	// The usages are only read if a role may be unused.
	return p.Step(ctx, nil, `DELETE FROM roles WHERE number NOT IN (SELECT role FROM temp.speaking) AND number NOT IN (SELECT role FROM usages)`)
}
