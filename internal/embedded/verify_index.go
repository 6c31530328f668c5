package embedded

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// order checks the entries that folds derive, for threads that did not change since the last
// fold. They depend only on entries that were compared with the journal; if any of these is
// wrong, order reports nothing.
func (v *verifier) order(used *index.Snapshot) error {
	if v.wrong {
		return nil
	}
	changed := make(map[structure.ThreadID]bool)
	for _, id := range read.ChangedThreads(used.Changed) {
		changed[id] = true
	}
	if readable, err := v.derivedOrder(used, changed); err != nil || !readable {
		return err
	}
	return v.missingOrder(used, changed)
}

// derivedOrder checks that each entry of the order follows from a thread. It reports whether all of them can be read.
func (v *verifier) derivedOrder(used *index.Snapshot, changed map[structure.ThreadID]bool) (readable bool, err error) {
	from, to := []byte{keys.TableThreadByTime}, keys.PrefixEnd([]byte{keys.TableThreadByTime})
	for {
		e, ok, err := used.FirstDerived(from, to)
		if err != nil {
			return false, v.found(v.indexFinding(nil, err.Error()))
		}
		if !ok {
			return true, nil
		}
		from = append(e.Key[:len(e.Key):len(e.Key)], 0)
		if err := v.progress(0); err != nil {
			return false, err
		}
		problem, err := orderProblem(used, changed, &e)
		if err != nil {
			return false, err
		}
		if problem == "" {
			continue
		}
		if err := v.found(v.indexFinding(e.Key, problem)); err != nil {
			return false, err
		}
	}
}

// orderProblem returns what is wrong with an entry of the order, or nothing. Entries of changed threads are not checked.
func orderProblem(used *index.Snapshot, changed map[structure.ThreadID]bool, e *index.Entry) (string, error) {
	const unknown = "entry that the journal does not account for"
	if len(e.Key) != keys.OrderKeySize {
		return unknown, nil
	}
	id := keys.OrderPosition(e.Key).Thread
	if changed[id] {
		return "", nil
	}
	listing, ok, err := read.Listing(used, id)
	switch {
	case err != nil:
		return "", err
	case !ok || !slices.ContainsFunc(keys.Orders(listing), func(k []byte) bool { return bytes.Equal(k, e.Key) }):
		return unknown, nil
	case len(e.Value) > 0:
		return "entry differs from the journal", nil
	}
	return "", nil
}

// missingOrder checks that each thread has its entries of the order.
func (v *verifier) missingOrder(used *index.Snapshot, changed map[structure.ThreadID]bool) error {
	for e, err := range used.Scan([]byte{keys.TableThread}, keys.PrefixEnd([]byte{keys.TableThread})) {
		if err != nil {
			return err
		}
		id := structure.ThreadID(e.Key[1:])
		if changed[id] {
			continue
		}
		listing, _, err := read.Listing(used, id)
		if err != nil {
			return err
		}
		for _, k := range keys.Orders(listing) {
			if _, ok, err := used.FirstDerived(k, append(k[:len(k):len(k)], 0)); err != nil {
				return err
			} else if !ok {
				if err := v.found(v.indexFinding(k, "entry is missing")); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// indexFile compares the index file with the checksums written when it was closed.
func (v *verifier) indexFile() error {
	if !v.opt.Deep {
		return nil
	}
	for damage, err := range v.engine.index.CheckSums() {
		if err != nil {
			return err
		}
		if err := v.found(backend.Finding{
			Subject: "index", File: v.engine.dir.index(), Offset: damage.Offset,
			Problem: fmt.Sprintf("%d bytes differ from what was written", damage.Length), Repair: backend.RebuildIndex,
		}); err != nil {
			return err
		}
	}
	return nil
}

// compare compares the current index with the rebuilt one.
func (v *verifier) compare(used, fresh *index.Snapshot) error {
	if used.State().Counts != fresh.State().Counts {
		if err := v.found(v.indexFinding(nil, "its counts differ from the journal")); err != nil {
			return err
		}
	}
	var damage error // of the current index
	derived := func(yield func(index.Entry, error) bool) {
		for e, err := range used.Scan(nil, nil) {
			if err != nil {
				damage = err
			} else {
				err = v.progress(0)
			}
			if !yield(e, err) {
				return
			}
		}
	}
	for d, err := range index.Differences(derived, fresh.Scan(nil, nil)) {
		switch {
		case damage != nil:
			return v.found(v.indexFinding(nil, damage.Error()))
		case err != nil:
			return err
		}
		problem, err := v.problem(d)
		if err != nil {
			return err
		}
		if problem != "" {
			v.wrong = true
			if err := v.found(v.indexFinding(d.Key, problem)); err != nil {
				return err
			}
		}
	}
	return nil
}

// problem returns what is wrong with an entry that differs from the rebuilt one, or nothing.
func (v *verifier) problem(d index.Difference) (string, error) {
	switch d.Key[0] {
	case keys.TableRequests, // packs do not store requests
		keys.TableThreadByTime,      // see verifier.order
		keys.TablePendingCollection, // the journal does not contain the pending collection
		keys.TablePackedUpTo:        // entries may be dropped right now
		return "", nil
	}
	switch {
	case d.Gone:
		packed, err := v.layer.agrees(v.files, d.Key, d.Was)
		if packed || err != nil { // not dropped from the index yet
			return "", err
		}
		return "entry that the journal does not account for", nil
	case d.New:
		return "entry is missing", nil
	case keys.SameSealed(d.Key, d.Was, d.Is):
		return "", nil
	}
	return "entry differs from the journal", nil
}

func (v *verifier) indexFinding(k []byte, problem string) backend.Finding {
	f := backend.Finding{Subject: "index", File: v.engine.dir.index(), Problem: problem, Repair: backend.RebuildIndex}
	if len(k) > 0 {
		f.ID = fmt.Sprintf("%c:%x", k[0], k[1:])
	}
	return f
}
