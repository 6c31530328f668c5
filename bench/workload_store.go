package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// Names of rows about stores.
const (
	workLength       = "fork, long history against short"
	workFill         = "filling a store"
	workLargeStore   = "extend, large store against small"
	workLargeFork    = "fork, large store against small"
	workLargeWindow  = "window, large store against small"
	workOpen         = "open"
	workOpenMemory   = "resident after opening"
	workVerify       = "verify"
	workVerifyDeep   = "verify deeply"
	workBeside       = "bytes beside content"
	workBesideEach   = "bytes beside content, a commit for each message"
	workPackedBeside = "bytes beside content, packed"
	workPacked       = "index bytes after packing"
)

// smallStore is the number of messages in the small store.
const smallStore = 10_000

// Maximum sizes for measurements that would otherwise take minutes.
const (
	maxSQLiteMessages = 100_000   // messages in a store, full text and all
	maxReadMessages   = 1_000_000 // messages that are all hashed or packed
)

// stores measures what depends on the size of the store: extends, forks and windows in a large and
// a small one, interleaved; opening, verifying, and the bytes that are not content.
func (r *run) stores(ctx context.Context) error {
	for _, s := range r.systems() {
		most := r.config.StoreMessages
		switch {
		case s.durability != normal:
			continue
		case s.name == nameLineage:
		case s.name == nameSQLite:
			most = min(most, maxSQLiteMessages)
		default:
			continue
		}
		if most < r.config.StoreMessages {
			r.skip(Skipped{Workload: "store", System: s.name, Size: r.config.StoreMessages, Why: "building it takes too long; measured at " + count(most)})
		}
		if err := r.storesOf(ctx, s, []int{min(smallStore, most), most}); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) storesOf(ctx context.Context, s system, sizes []int) error {
	var bases []*base
	for _, n := range sizes {
		b, err := r.filled(ctx, s, n)
		if b != nil {
			bases = append(bases, b)
		}
		if err != nil {
			return closeAll(bases, err)
		}
	}
	if err := closeAll(bases, r.onStores(ctx, sizes, bases)); err != nil || s.name != nameLineage {
		return err
	}
	if err := r.freshOverhead(ctx, workBeside, 1_000); err != nil {
		return err
	}
	if err := r.freshOverhead(ctx, workBesideEach, 1); err != nil {
		return err
	}
	return r.packedOverhead(ctx)
}

// freshOverhead reports the size of an unpacked store without content, including the index. The
// other stores have packed part of their data.
func (r *run) freshOverhead(ctx context.Context, workload string, together int) error {
	n := min(r.config.StoreMessages, maxReadMessages)
	o := lineage.Options{Durability: lineage.Normal, NoPacking: true}
	return r.overhead(ctx, o, n, together, newMessages(&r.config, streamStore).some, func(s *lineageStore) error {
		// Closing brings the index up to date.
		if err := errors.Join(s.shut(), s.openAgain(ctx)); err != nil {
			return err
		}
		return r.beside(ctx, workload, n, s.store)
	})
}

// packedOverhead reports the size of a packed store without content, including the index. Messages
// are random bytes, so that compression does not hide it.
func (r *run) packedOverhead(ctx context.Context) error {
	n := min(r.config.StoreMessages, 100_000)
	random := func(n int) [][]byte {
		all := make([][]byte, n)
		for i := range all {
			all[i] = make([]byte, r.config.MessageBytes)
			_, _ = rand.Read(all[i]) // it does not fail
		}
		return all
	}
	return r.overhead(ctx, lineage.Options{Durability: lineage.Normal}, n, 1_000, random, func(s *lineageStore) error {
		if _, err := s.store.Pack(ctx, lineage.PackOptions{All: true}); err != nil {
			return err
		}
		return r.beside(ctx, workPackedBeside, n, s.store)
	})
}

// overhead fills a new store with n messages, in histories of a thousand messages with together of
// them per commit, and calls measure.
func (r *run) overhead(ctx context.Context, o lineage.Options, n, together int, some func(n int) [][]byte, measure func(*lineageStore) error) (err error) {
	dir, err := r.directory("overhead")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &lineageStore{dir: dir, options: o}
	if err := s.open(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for done := 0; done < n; done += 1_000 {
		r.config.Progress("filling a store to see what it takes, " + count(done) + " messages")
		h, err := s.start(ctx)
		if err != nil {
			return err
		}
		for part := range slices.Chunk(some(min(1_000, n-done)), together) {
			if err := h.load(ctx, part); err != nil {
				return err
			}
		}
	}
	return measure(s)
}

// filled opens a store and adds n messages: half in histories of a thousand, the others in a single
// long history, which is measured.
func (r *run) filled(ctx context.Context, s system, n int) (*base, error) {
	o, err := r.open(ctx, s)
	if err != nil {
		return nil, err
	}
	b := &base{opened: o, length: n}
	m := newMessages(&r.config, streamStore)
	began := time.Now()
	for done := 0; done < n; {
		if err := ctx.Err(); err != nil {
			return b, err
		}
		k := min(1_000, n-done)
		if done <= n/2 {
			if b.history, err = o.store.start(ctx); err != nil {
				return b, err
			}
		}
		if err := b.history.load(ctx, m.some(k)); err != nil {
			return b, err
		}
		if done += k; done%50_000 == 0 {
			r.config.Progress(fmt.Sprintf("filling %s: %s of %s messages, %s/s", s.name, count(done), count(n), count(int(float64(done)/time.Since(began).Seconds()))))
		}
	}
	row := Row{Workload: workFill, System: s.name, Durability: s.durability, Size: n, Unit: unitPerSec, Value: float64(n) / time.Since(began).Seconds()}
	r.fact(row)
	return b, nil
}

func (r *run) onStores(ctx context.Context, sizes []int, bases []*base) error {
	var extends, forks, windows []contender
	for i, b := range bases {
		named := func(c contender) contender {
			c.system += ", " + count(sizes[i]) + " messages"
			return c
		}
		extends = append(extends, named(r.extends(b)))
		forks = append(forks, named(r.forks(b, b.each())))
		windows = append(windows, named(reading(b, windowLast, 20, min(windowLast, sizes[i]))))
	}
	last := len(sizes) - 1
	for _, w := range []struct {
		name       string
		contenders []contender
	}{{workLargeStore, extends}, {workLargeFork, forks}, {workLargeWindow, windows}} {
		if err := r.compare(ctx, subject{workload: w.name, size: sizes[last]}, w.contenders); err != nil {
			return err
		}
	}
	for i, b := range bases {
		if err := r.opening(ctx, sizes[i], b); err != nil {
			return err
		}
	}
	if st, ok := bases[last].store.(*lineageStore); ok {
		return r.onLineage(ctx, sizes[last], bases[last], st)
	}
	return nil
}

// opening measures opening a store, and its memory afterwards.
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

// onLineage measures operations that only this store has.
func (r *run) onLineage(ctx context.Context, n int, b *base, st *lineageStore) error {
	if err := r.verifying(ctx, n, b, st); err != nil {
		return err
	}
	if n > maxReadMessages {
		r.skip(Skipped{Workload: workPacked, System: nameLineage, Size: n, Why: "packing it takes minutes"})
		return nil
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

// beside reports the bytes per message that are not content.
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
		if deep && n > maxReadMessages {
			r.skip(Skipped{Workload: name, System: b.name, Size: n, Why: "hashing all of it takes minutes"})
			continue
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

// verifyError is an unexpected finding in a measured store.
type verifyError struct{ finding backend.Finding }

func (e *verifyError) Error() string {
	return "the store that was measured is damaged: " + e.finding.String()
}

// fact adds a row without timing.
func (r *run) fact(row Row) {
	row.Low, row.High, row.Rounds, row.Operations = row.Value, row.Value, 1, 1
	r.report.Rows = append(r.report.Rows, row)
}

// resident returns the resident memory of the process, 0 if unknown.
func resident() uint64 {
	runtime.GC()
	debug.FreeOSMemory()
	return statusBytes("self", "VmRSS")
}

// mostResident returns the largest resident memory that the process had, 0 if unknown. What the kernel says of resources
// used has that of the parent.
func mostResident() uint64 { return statusBytes("self", "VmHWM") }

func statusBytes(process, name string) uint64 {
	kib, err := strconv.ParseUint(strings.TrimSuffix(field("/proc/"+process+"/status", name), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
