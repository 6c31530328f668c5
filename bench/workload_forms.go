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
		made, failed := r.schemaOf(ctx, name, statements...)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, made.drop()) }()
		in[name] = made
	}
	names := []string{nameRows, nameTyped, nameEntries, nameTail, nameServed}
	c := servedComparison{run: r, prefix: workForms, names: names, in: in, written: make(map[string]int)}
	return c.compareAll(ctx)
}

// prototypes are the forms by name.
var prototypes = map[string]form{nameTyped: typedForm, nameEntries: entriesForm, nameTail: tailForm}
