package bench

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

// Names of rows about stores.
const (
	workLength     = "fork, long history against short"
	workLargeStore = "extend, large store against small"
	workOpen       = "open"
	workOpenMemory = "resident after opening"
	workVerify     = "verify"
	workVerifyDeep = "verify deeply"
	workBeside     = "bytes beside content"
	workPacked     = "index bytes after packing"
)

// smallStore is how much the small store holds.
const smallStore = 10_000

// stores measures what depends on the size of the store: extends and forks in a
// large one and a small one in turn, opening, verifying, and the bytes that are
// not content.
func (r *run) stores(ctx context.Context) error {
	sizes := []int{smallStore, r.config.StoreMessages}
	for _, s := range r.systems() {
		if s.durability != normal || s.name != nameLineage && s.name != nameSQLite && s.name != nameBolt {
			continue
		}
		var bases []*base
		var err error
		for _, n := range sizes {
			if s.name == nameSQLite && n > 1_000_000 {
				r.skip(Skipped{Workload: "store", System: s.name, Size: n, Why: "building it takes the better part of an hour"})
				continue
			}
			var b *base
			if b, err = r.filled(ctx, s, n); b != nil {
				bases = append(bases, b)
			}
			if err != nil {
				break
			}
		}
		if err == nil && len(bases) == 2 {
			err = r.onStores(ctx, sizes, bases)
		}
		if err := closeAll(bases, err); err != nil {
			return err
		}
	}
	return nil
}

// filled opens a store and gives it n messages, in histories of a thousand and one
// that holds the rest.
func (r *run) filled(ctx context.Context, s system, n int) (*base, error) {
	o, err := r.open(ctx, s)
	if err != nil {
		return nil, err
	}
	b := &base{opened: o}
	m := newMessages(&r.config, streamStore)
	for done := 0; done < n; {
		k := min(1_000, n-done)
		if b.history, err = o.store.start(ctx); err != nil {
			return b, err
		}
		if err := b.history.load(ctx, m.some(k)); err != nil {
			return b, err
		}
		if done += k; done%100_000 == 0 {
			r.config.Progress("filling " + s.name + ": " + count(done) + " of " + count(n) + " messages")
		}
	}
	return b, nil
}

func (r *run) onStores(ctx context.Context, sizes []int, bases []*base) error {
	var extends []contender
	for i, b := range bases {
		c := r.extends(b)
		c.system += ", " + count(sizes[i]) + " messages"
		extends = append(extends, c)
	}
	large := bases[len(bases)-1]
	if err := r.compare(ctx, subject{workload: workLargeStore, size: sizes[len(sizes)-1]}, extends); err != nil {
		return err
	}
	for i, b := range bases {
		if err := r.opening(ctx, sizes[i], b); err != nil {
			return err
		}
	}
	if st, ok := large.store.(*lineageStore); ok {
		return r.onLineage(ctx, sizes[len(sizes)-1], large, st)
	}
	return nil
}

// opening measures opening a store, and the memory that it takes then.
func (r *run) opening(ctx context.Context, n int, b *base) error {
	again, ok := b.store.(reopener)
	if !ok {
		return nil
	}
	if err := again.shut(); err != nil {
		return err
	}
	before := resident()
	if err := again.openAgain(ctx); err != nil {
		return err
	}
	if after := resident(); after > 0 {
		r.fact(Row{Workload: workOpenMemory, System: b.name, Size: n, Unit: unitBytes, Value: max(0, float64(after)-float64(before))})
	}
	return r.compare(ctx, subject{workload: workOpen, size: n, rounds: min(r.config.Rounds, 7)}, []contender{{
		system: b.name, durability: b.durability,
		before: func(context.Context) error { return again.shut() },
		round:  func(ctx context.Context) (int, error) { return 1, again.openAgain(ctx) },
	}})
}

// onLineage measures what only this store has.
func (r *run) onLineage(ctx context.Context, n int, b *base, st *lineageStore) error {
	if err := r.beside(ctx, workBeside, n, st.store); err != nil {
		return err
	}
	if err := r.verifying(ctx, n, b, st); err != nil {
		return err
	}
	if _, err := st.store.Pack(ctx, lineage.PackOptions{All: true}); err != nil {
		return err
	}
	stats, err := st.store.Stats(ctx)
	if err != nil {
		return err
	}
	r.fact(Row{
		Workload: workPacked, System: nameLineage, Size: n, Unit: unitPerItem,
		Value: float64(stats.IndexBytes) / float64(stats.Usages),
	})
	return nil
}

// beside reports how many bytes of the store are not content, for each message.
func (r *run) beside(ctx context.Context, workload string, n int, s *lineage.Store) error {
	if err := s.Sync(ctx); err != nil {
		return err
	}
	stats, err := s.Stats(ctx)
	if err != nil {
		return err
	}
	r.fact(Row{
		Workload: workload, System: nameLineage, Size: n, Unit: unitPerItem,
		Value: max(0, float64(stats.StoredBytes)-float64(stats.UniqueBytes)) / float64(stats.Usages),
	})
	return nil
}

func (r *run) verifying(ctx context.Context, n int, b *base, st *lineageStore) error {
	for _, deep := range []bool{false, true} {
		name := workVerify
		if deep {
			name = workVerifyDeep
		}
		err := r.compare(ctx, subject{workload: name, size: n, rounds: 1, warm: true}, []contender{{
			system: b.name, durability: b.durability,
			round: func(ctx context.Context) (int, error) {
				for f, err := range st.store.Verify(ctx, lineage.VerifyOptions{Deep: deep}) {
					if err != nil {
						return 0, err
					}
					return 0, &verifyError{f}
				}
				return n, nil
			},
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// verifyError is a finding in a store that should have none.
type verifyError struct{ finding lineage.Finding }

func (e *verifyError) Error() string {
	return "the store that was measured is damaged: " + e.finding.String()
}

// fact adds a row that was not timed.
func (r *run) fact(row Row) {
	row.Low, row.High, row.Rounds, row.Operations = row.Value, row.Value, 1, 1
	r.report.Rows = append(r.report.Rows, row)
}

// resident returns the memory that the process has, 0 where that cannot be told.
func resident() uint64 {
	runtime.GC()
	debug.FreeOSMemory()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return 0
	}
	kib, err := strconv.ParseUint(strings.TrimSuffix(field("/proc/self/status", "VmRSS"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
