package postgres

import (
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/structure"
)

// FirstDerived implements read.Derived. Readers ask for the first entry from a key on, and then for the first after that.
func (t *stateReader) FirstDerived(from, to []byte) (index.Entry, bool, error) {
	return t.pages.listing('+', to).first(from, to, t.listingPage)
}

// LastDerived implements read.Derived. Readers ask for the last entry before a key, and then for the last before that.
func (t *stateReader) LastDerived(from, to []byte) (index.Entry, bool, error) {
	return t.pages.listing('-', from).last(from, to, t.listingPage)
}

// listingPage fetches a page of a listing, and what its entries refer to.
func (t *stateReader) listingPage(p entryPage) (foundPage, error) {
	f, err := t.fetch(t.ctx, need{pages: []entryPage{p}})
	if err == nil {
		err = t.related(f.pages[0].entries)
	}
	if err != nil {
		return foundPage{}, err
	}
	return f.pages[0], nil
}

// related fetches the entries that the entries of a page refer to: readers of lists read them next.
func (t *stateReader) related(page []index.Entry) error {
	if err := t.Prefetch(t.ctx, references(page)); err != nil {
		return err
	}
	// The time of the last message of a thread is found by its record, and so is what may be erased of a summary.
	erased := keys.CountersOf(t.state.counts).Erased > 0
	var n read.Need
	for _, e := range page {
		switch e.Key[0] {
		case keys.TableThreadBySource, keys.TableThreadByTitle, keys.TableThreadByTime:
			if err := t.needLastMessage(&n, structure.ThreadID(e.Key[len(e.Key)-16:])); err != nil {
				return err
			}
		case keys.TableSummary:
			s, err := keys.Record[*structure.Summary](structure.KindSummary, e.Value, "")
			if err == nil && erased && s.Embedding != nil { // a record that cannot be read is reported when it is listed
				n.Keys = append(n.Keys, keys.Of(keys.TableErased, s.Content[:]))
			}
		}
	}
	return t.Prefetch(t.ctx, n)
}

// references returns the keys that entries refer to.
func references(page []index.Entry) (n read.Need) {
	add := func(key []byte) { n.Keys = append(n.Keys, key) }
	for _, e := range page {
		k := e.Key
		last := k[max(1, len(k)-16):] // mostly an id
		switch k[0] {
		case keys.TableContextOfThread, keys.TableChildOfContext:
			add(keys.Of(keys.TableContext, last))
			add(keys.Of(keys.TableTip, last))
		case keys.TableContext:
			add(keys.Of(keys.TableTip, last))
		case keys.TableForkOfRun, keys.TableRunOfThread:
			add(keys.Of(keys.TableRun, last))
		case keys.TableThreadBySource, keys.TableThreadByTitle, keys.TableThreadByTime:
			add(keys.Of(keys.TableThread, last))
		case keys.TableThreadByEnd:
			add(keys.Of(keys.TableThread, k[5:], k[1:5]))
		case keys.TableBranchOfContext:
			add(keys.Of(keys.TableBranch, k[1:17], k[33:]))
		case keys.TableBranchBySource:
			add(keys.Of(keys.TableBranch, k[len(k)-16:], e.Value))
		case keys.TableCheckpointBySource:
			add(keys.Of(keys.TableCheckpoint, k[len(k)-16:], e.Value))
		case keys.TableSpanBySource:
			if _, ref, err := keys.ReadLookup(k); err == nil {
				add(keys.Of(keys.TableRun, ref.Run[:]))
			}
		}
	}
	return n
}

// needLastMessage adds what the time of the last message of a thread is read from.
func (t *stateReader) needLastMessage(n *read.Need, id structure.ThreadID) error {
	v, ok, err := t.Get(keys.Of(keys.TableThread, id[:]))
	if err != nil || !ok {
		return err
	}
	thread, err := keys.Record[*structure.Thread](structure.KindThread, v, id.String())
	if err == nil {
		n.Keys = append(n.Keys, keys.AppendMessage(nil, thread.Home()))
	}
	return err
}

// Changed implements read.Derived. What the listing of changed threads needs is fetched at once.
func (t *stateReader) Changed(prefix []byte) iter.Seq[index.Entry] {
	changed := func(prefix []byte) iter.Seq[index.Entry] {
		return slices.Values(t.state.unfolded.between(prefix, keys.PrefixEnd(prefix)))
	}
	var n read.Need
	ids := slices.Compact(read.ChangedThreads(changed))
	for _, id := range ids {
		n.Keys = append(n.Keys, keys.Of(keys.TableThread, id[:]))
	}
	if t.Prefetch(t.ctx, n) == nil { // an error comes back when they are read
		n = read.Need{}
		for _, id := range ids {
			_ = t.needLastMessage(&n, id)
		}
		_ = t.Prefetch(t.ctx, n)
	}
	return changed(prefix)
}

// ManyChanged implements read.Derived.
func (t *stateReader) ManyChanged() {}
