package bench

import (
	"context"
	"errors"
)

// workForms begins the names of what forms measures.
const workForms = "forms: "

// forms compares the forms that a store on a server was chosen from, with the store as it is and with one-row inserts.
func (r *run) forms(ctx context.Context) (err error) {
	if r.postgres == "" {
		r.skip(Skipped{Workload: "forms", System: namePostgres, Why: r.noPostgres})
		return nil
	}
	o, err := r.open(ctx, servedSystem(r.postgres, full))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	in := map[string]*schema{nameServed: o.store.(*servedStore).schema}
	tables := map[string][]string{nameRows: {rowsTable}}
	for name, f := range prototypes {
		tables[name] = append(formTables[:len(formTables):len(formTables)], f.tables...)
	}
	for name, statements := range tables {
		dir, failed := r.directory(name)
		if failed != nil {
			return failed
		}
		made, failed := newSchema(ctx, r.postgres, dir)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, made.drop()) }()
		if err := made.exec(ctx, statements...); err != nil {
			return err
		}
		in[name] = made
	}
	names := []string{nameRows, nameTyped, nameEntries, nameTail, nameServed}
	c := servedComparison{run: r, prefix: workForms, names: names, in: in, written: make(map[string]int)}
	for _, delay := range serverDelays {
		for _, shape := range []servedShape{servedLone, servedMany, servedApart} {
			if err := c.compare(ctx, shape, delay); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		if err := r.servedBytes(ctx, workForms+workServedBytes, in[name], name, c.written[name]); err != nil {
			return err
		}
	}
	return nil
}

// prototypes are the forms by name.
var prototypes = map[string]form{nameTyped: typedForm, nameEntries: entriesForm, nameTail: tailForm}
