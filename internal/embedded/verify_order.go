package embedded

import (
	"bytes"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
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
	from, to := []byte{keys.TableThreadByTime}, keys.PrefixEnd([]byte{keys.TableThreadByTime})
	for {
		e, ok, err := used.FirstDerived(from, to)
		if err != nil {
			return v.found(v.indexFinding(nil, err.Error()))
		}
		if !ok {
			break
		}
		from = append(e.Key[:len(e.Key):len(e.Key)], 0)
		if err := v.progress(0); err != nil {
			return err
		}
		problem := "entry that the journal does not account for"
		if len(e.Key) == keys.OrderKeySize {
			id := keys.OrderPlace(e.Key).Thread
			if changed[id] {
				continue
			}
			listing, ok, err := read.Listing(used, id)
			if err != nil {
				return err
			}
			if ok && slices.ContainsFunc(keys.Orders(listing), func(k []byte) bool { return bytes.Equal(k, e.Key) }) {
				if len(e.Value) == 0 {
					continue
				}
				problem = "entry differs from the journal"
			}
		}
		if err := v.found(v.indexFinding(e.Key, problem)); err != nil {
			return err
		}
	}
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
