package read

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// LastMessage implements backend.ThreadReader.
func (v *View) LastMessage(_ context.Context, home structure.Home) (time.Time, error) {
	at, ok, err := LastMessage(v.Index, home)
	if err != nil || !ok {
		return time.Time{}, err
	}
	return time.UnixMilli(at).UTC(), nil
}

// ListThreads implements backend.ThreadReader.
func (v *View) ListThreads(ctx context.Context, q backend.ThreadQuery) iter.Seq2[backend.ThreadListing, error] {
	return func(yield func(backend.ThreadListing, error) bool) {
		l := lister{View: v, ctx: ctx, q: q, yield: yield}
		err := q.Check()
		if err == nil {
			err = l.list()
		}
		if err != nil {
			yield(backend.ThreadListing{}, err)
		}
	}
}

// lister lists the threads that match a query, in the order of PageToken or its reverse.
type lister struct {
	*View
	ctx   context.Context
	q     backend.ThreadQuery
	yield func(backend.ThreadListing, error) bool
	done  bool // the caller stopped iterating

	first orderBound
	lists [][]keys.OrderFilter // a thread must be in one list of each element

	changed map[structure.ThreadID]struct{} // since the last fold
	recent  []backend.ThreadListing         // matching changed threads that are not listed yet, in order
}

// orderBound is where a listing continues: at a position or after it.
type orderBound struct {
	at     backend.PageToken
	behind bool
}

// ManyChanged is the number of changed threads at which a listing starts a fold, to make
// later listings cheaper.
const ManyChanged = 4096

func (l *lister) list() error {
	l.begin()
	for _, prefix := range []struct {
		table byte
		text  string
	}{{keys.TableThreadBySource, l.q.SourcePrefix}, {keys.TableThreadByTitle, backend.FoldCase(l.q.TitlePrefix)}} {
		if prefix.text == "" {
			continue
		}
		if few, err := l.byText(prefix.table, prefix.text); err != nil || few {
			return err
		}
	}
	if err := l.recentlyChanged(); err != nil {
		return err
	}
	for at := l.first; !l.done; {
		if l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		next, ok, err := l.next(at)
		if err != nil {
			return err
		}
		if !ok {
			l.upTo(nil)
			return nil
		}
		at = orderBound{next, true}
		if _, changed := l.changed[next.Thread]; changed {
			continue
		}
		listing, ok, err := Listing(l.Index, next.Thread)
		if err != nil {
			return err
		}
		if ok && listing.Token() == next && l.q.Matches(listing) {
			l.upTo(&next)
			l.put(listing)
		}
	}
	return nil
}

// begin determines the start of the listing and the lists to read.
func (l *lister) begin() {
	q := &l.q
	for _, bound := range []*time.Time{&q.From, &q.To} { // threads have times of whole milliseconds
		if whole := bound.Truncate(time.Millisecond); bound.After(whole) {
			*bound = whole.Add(time.Millisecond)
		}
	}
	if q.Oldest {
		l.first.at = backend.PageToken{Updated: math.MinInt64}
		if !q.From.IsZero() {
			l.first.at.Updated = backend.OrderTime(q.From)
		}
	} else {
		l.first.at = backend.PageToken{Updated: math.MaxInt64, Thread: lastThread}
		if !q.To.IsZero() {
			l.first.at.Updated = backend.OrderTime(q.To)
		}
	}
	if !q.After.IsZero() && !l.before(q.After, l.first.at) {
		l.first = orderBound{q.After, true}
	}
	if q.User != nil && *q.User != "" {
		l.lists = append(l.lists, []keys.OrderFilter{keys.UserFilter(*q.User)})
	}
	for _, m := range q.Metadata {
		s, _ := m.Scalar()
		l.lists = append(l.lists, []keys.OrderFilter{keys.ScalarFilter(s), keys.FilterMore})
	}
	if len(l.lists) == 0 {
		l.lists = [][]keys.OrderFilter{{keys.FilterAll}}
	}
}

var lastThread = structure.ThreadID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// before reports whether a position precedes another in this listing.
func (l *lister) before(a, b backend.PageToken) bool {
	if l.q.Oldest {
		return a.Compare(b) < 0
	}
	return a.Compare(b) > 0
}

// includes reports whether a position is not before the start.
func (l *lister) includes(at backend.PageToken) bool {
	return l.before(l.first.at, at) || !l.first.behind && at == l.first.at
}

// next returns the first position from a bound on that is in one list of each element of
// lists. Each list is searched only from where the others continue.
func (l *lister) next(from orderBound) (at backend.PageToken, ok bool, err error) {
	for agreed := 0; ; {
		for _, list := range l.lists {
			at, ok, err := l.seek(list, from)
			if err != nil || !ok {
				return at, false, err
			}
			if at != from.at {
				agreed = 0
			}
			from = orderBound{at: at}
			if agreed++; agreed == len(l.lists) {
				return at, true, nil
			}
		}
	}
}

// seek returns the first position from a bound on that is in one of the lists.
func (l *lister) seek(lists []keys.OrderFilter, from orderBound) (first backend.PageToken, found bool, err error) {
	for _, f := range lists {
		k := keys.Order(f, from.at)
		var e index.Entry
		var ok bool
		if l.q.Oldest {
			if from.behind {
				k = append(k, 0)
			}
			to := keys.PrefixEnd(keys.Of(keys.TableThreadByTime, f[:]))
			if !l.q.To.IsZero() {
				to = append(keys.Order(f, backend.PageToken{Updated: backend.OrderTime(l.q.To), Thread: lastThread}), 0)
			}
			e, ok, err = l.Index.FirstDerived(k, to)
		} else {
			if !from.behind {
				k = append(k, 0)
			}
			low := keys.Of(keys.TableThreadByTime, f[:])
			if !l.q.From.IsZero() {
				low = keys.Order(f, backend.PageToken{Updated: backend.OrderTime(l.q.From)})
			}
			e, ok, err = l.Index.LastDerived(low, k)
		}
		if err != nil {
			return first, false, err
		}
		if !ok {
			continue
		}
		if at := keys.OrderPosition(e.Key); !found || l.before(at, first) {
			first, found = at, true
		}
	}
	return first, found, nil
}

// recentlyChanged reads the threads that changed since the last fold.
func (l *lister) recentlyChanged() error {
	ids := slices.Compact(ChangedThreads(l.Index.Changed))
	l.changed = make(map[structure.ThreadID]struct{}, len(ids))
	for i, id := range ids {
		if i%256 == 0 && l.ctx.Err() != nil {
			return context.Cause(l.ctx)
		}
		l.changed[id] = struct{}{}
		if err := l.consider(id); err != nil {
			return err
		}
	}
	l.sort()
	if len(ids) > ManyChanged {
		l.Index.ManyChanged()
	}
	return nil
}

// byText lists the threads whose source id or title starts with a text, unless there are
// many.
func (l *lister) byText(table byte, text string) (few bool, err error) {
	n := 0
	var ids []structure.ThreadID
	for e, err := range l.Entries(l.ctx, keys.TextPrefix(table, text)) {
		if err != nil {
			return false, err
		}
		if n++; n > backend.ManyMatches {
			return false, nil
		}
		ids = append(ids, structure.ThreadID(e.Key[len(e.Key)-len(structure.ThreadID{}):]))
	}
	for _, id := range ids {
		if err := l.consider(id); err != nil {
			return false, err
		}
	}
	l.sort()
	l.upTo(nil)
	return true, nil
}

// consider adds a thread to recent if it matches.
func (l *lister) consider(id structure.ThreadID) error {
	listing, ok, err := Listing(l.Index, id)
	if err == nil && ok && l.includes(listing.Token()) && l.q.Matches(listing) {
		l.recent = append(l.recent, listing)
	}
	return err
}

func (l *lister) sort() {
	slices.SortFunc(l.recent, func(a, b backend.ThreadListing) int {
		if l.before(a.Token(), b.Token()) {
			return -1
		}
		return 1
	})
}

// upTo yields the threads of recent before a position, or all of them.
func (l *lister) upTo(at *backend.PageToken) {
	for len(l.recent) > 0 && !l.done && (at == nil || l.before(l.recent[0].Token(), *at)) {
		l.put(l.recent[0])
		l.recent = l.recent[1:]
	}
}

func (l *lister) put(listing backend.ThreadListing) {
	l.done = l.done || !l.yield(listing, nil)
}
