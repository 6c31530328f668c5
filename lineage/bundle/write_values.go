package bundle

import (
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// historyBytes limits the memory for the history of a value.
const historyBytes = 16 << 20

// values writes the values of the threads and contexts that were written. For a whole store it writes all other
// values too. Values are written last, because they name spans.
func (e *exporter) values(whole bool) error {
	var owners []structure.Owner
	if whole {
		owners = append(owners, structure.Owner{Scope: structure.StoreScope})
		for _, scope := range [...]structure.Scope{structure.ApplicationScope, structure.UserScope} {
			for name, err := range e.from.ValueOwners(e.ctx, scope, "") {
				if err != nil {
					return err
				}
				owners = append(owners, structure.Owner{Scope: scope, Name: name})
			}
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(e.threads), structure.ThreadID.Compare) {
		owners = append(owners, structure.Owner{Scope: structure.ThreadScope, Thread: id})
	}
	for _, id := range slices.SortedFunc(maps.Keys(e.contexts), structure.ContextID.Compare) {
		owners = append(owners, structure.Owner{Scope: structure.ContextScope, Context: id})
	}
	for _, owner := range owners {
		if err := e.valuesOf(owner); err != nil {
			return err
		}
	}
	return e.flushAfter(entryValues, &e.pendingValues)
}

// valuesOf writes the values of an owner: for each key the latest record, followed by all records from the oldest on
// if there are several.
func (e *exporter) valuesOf(owner structure.Owner) error {
	for latest, err := range e.from.Values(e.ctx, owner, "", "") {
		if err != nil {
			return err
		}
		e.report.Values++
		if err := e.value(&latest.Value); err != nil {
			return err
		}
		for written := uint64(0); written < latest.Commit; {
			oldest, err := e.oldest(latest.ValueKey, written)
			if err != nil {
				return err
			}
			if len(oldest) == 1 && written == 0 && oldest[0].Commit == latest.Commit {
				break // there is only one
			}
			for _, v := range slices.Backward(oldest) {
				if err := e.value(&v.Value); err != nil {
					return err
				}
				written = v.Commit
			}
		}
	}
	return nil
}

// oldest returns the oldest records of a value after a commit, in reverse order.
func (e *exporter) oldest(key structure.ValueKey, behind uint64) (window []backend.Value, err error) {
	size := 0
	for v, err := range e.from.ValueHistory(e.ctx, key) {
		if err != nil {
			return nil, err
		}
		if v.Commit <= behind {
			break
		}
		window = append(window, v)
		for size += valueSize(&v.Value); size > historyBytes && len(window) > 1; window = window[1:] {
			size -= valueSize(&window[0].Value)
		}
	}
	return window, nil
}

// valueSize estimates the memory of a value.
func valueSize(v *structure.Value) int {
	return 256 + len(v.Owner.Name) + len(v.Key) + len(v.JSON)
}

func (e *exporter) value(v *structure.Value) error {
	if err := e.content(v.Content); err != nil {
		return err
	}
	if !v.Seen.IsZero() && e.runs[v.Seen.Run] < v.Seen.Seq {
		changed := *v // the span is not in the bundle
		changed.Seen, v = structure.CollectedSpan, &changed
	}
	return e.addAfter(entryValues, &e.pendingValues, v.At, v)
}

// sameValue reports whether two records of a key set the same value. The thread's incarnation and the span seen are
// ignored, because they may differ between stores.
func sameValue(a, b *structure.Value) bool {
	x, y := *a, *b
	x.Incarnation, x.Seen = y.Incarnation, y.Seen
	return structure.Equal(&x, &y)
}
