package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A victim is a closed index that will be damaged: a few hundred pages in three
// levels, including free pages with old leaves at the same places and of the
// same sizes as current ones.
type victim struct {
	path    string
	clean   []byte // the used part of the file
	batches [][]Entry
	models  []model // after so many commits
}

const victimKeys = 1000

// victimKey is long, so that branch pages have few keys.
func victimKey(i int) string { return strings.Repeat("p", 120) + key(i) }

func victimBatch(from, to int, value func(i int) string) []Entry {
	batch := batchOf(from, to, value)
	for i := range batch {
		batch[i].Key = []byte(victimKey(from + i))
	}
	return batch
}

func newVictim(t testing.TB, sealed bool) *victim {
	t.Helper()
	v := &victim{path: newPath(t), models: []model{{}}}
	db, err := Open(v.path, Options{})
	require.NoError(t, err)
	db.bolt.NoSync = true
	m := model{}
	commit := func(batch []Entry) {
		m.apply(batch)
		v.batches = append(v.batches, batch)
		v.models = append(v.models, m.clone())
		db.Apply(at(uint64(len(v.batches))), batch)
		require.NoError(t, db.Checkpoint())
	}
	value := func(generation int) func(int) string {
		return func(i int) string { return fmt.Sprintf("%04d %d %s", i, generation, strings.Repeat("v", 60+i%50)) }
	}
	commit(victimBatch(0, victimKeys, value(1)))
	if sealed {
		require.NoError(t, db.Compact(t.Context(), nil))
		db.bolt.NoSync = true
	}
	for generation := range 4 { // same keys, same sizes, other values
		commit(victimBatch(generation*200, generation*200+300, value(2+generation)))
	}
	commit([]Entry{{Key: []byte(victimKey(11))}, {Key: []byte("large"), Value: []byte(strings.Repeat("l", 9<<10))}})
	require.NoError(t, db.bolt.View(func(tx *bbolt.Tx) error {
		if !sealed {
			require.GreaterOrEqual(t, tx.Bucket(leavesBucket).Stats().Depth, 3)
		}
		return nil
	}))
	used := db.pages.inUse()
	require.NoError(t, db.Close())
	b, err := os.ReadFile(v.path)
	require.NoError(t, err)
	v.clean = b[:used]
	return v
}

// flip changes one byte of the file until restore is called.
func (v *victim) flip(t testing.TB, f *os.File, offset int, x byte) (restore func()) {
	t.Helper()
	_, err := f.WriteAt([]byte{v.clean[offset] ^ x}, int64(offset))
	require.NoError(t, err)
	return func() {
		_, err := f.WriteAt(v.clean[offset:offset+1], int64(offset))
		require.NoError(t, err)
	}
}

// check reads the damaged index in every way. It counts errors, and returns an
// error for a wrong answer.
func (v *victim) check(db *DB, rng *rand.Rand) (failed int, err error) {
	number := db.State().Number
	if number >= uint64(len(v.models)) {
		return 0, fmt.Errorf("%w: commit %d", errWrong, number)
	}
	m := v.models[number]
	s := db.Snapshot()
	defer s.Close()
	tell := func(e error) {
		switch {
		case e == nil:
		case errors.Is(e, errWrong) || !errors.Is(e, backend.ErrCorrupt):
			if err == nil {
				err = e
			}
		default:
			failed++
		}
	}
	tell(m.checkScan(s, nil, nil))
	for i := range victimKeys {
		k := victimKey(i)
		if i%5 == 0 {
			k += "\x00"
		}
		tell(m.checkGet(s, k))
	}
	tell(m.checkGet(s, "large"))
	tell(m.checkLast(s, nil, nil))
	tell(m.checkLast(s, nil, []byte("q")))
	keys := m.keys()
	for range 30 {
		i := 1 + rng.IntN(len(keys)-1)
		e, ok, lastErr := s.Last(nil, []byte(keys[i]))
		if lastErr == nil && (!ok || string(e.Key) != keys[i-1] || string(e.Value) != m[keys[i-1]]) {
			lastErr = fmt.Errorf("%w: last before %q is %q", errWrong, keys[i], e.Key)
		}
		tell(lastErr)
	}
	return failed, err
}

// pageSize returns the size of pages that a file states.
func pageSize(file []byte) int { return int(binary.NativeEndian.Uint32(file[pageHeader+8:])) }

// places returns offsets to damage: first those of bbolt's own structures,
// which have no checksums of ours.
func (v *victim) places() (structure, rest []int) {
	size := pageSize(v.clean)
	for page := 0; page < len(v.clean); page += size {
		b := v.clean[page:]
		count := int(binary.NativeEndian.Uint16(b[10:]))
		end := pageHeader
		switch flags := binary.NativeEndian.Uint16(b[8:]); {
		case flags == 0x04: // meta
			end += metaLen
		case flags == flagBranch, flags == flagFreelist:
			end = min(size, pageHeader+count*elementSize+64)
		case flags == flagLeaf:
			end += min(count*elementSize, size-pageHeader)
		}
		for i := range min(size, len(b)) {
			if i < end {
				structure = append(structure, page+i)
			} else {
				rest = append(rest, page+i)
			}
		}
	}
	return structure, rest
}

// eachFlip calls fn repeatedly, each time with one other byte damaged. Most of
// them are in data without checksums.
func eachFlip(t *testing.T, v *victim, n int, rng *rand.Rand, fn func(offset int, x byte)) {
	f, err := os.OpenFile(v.path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	structure, rest := v.places()
	for i := range n {
		from := structure
		if i%5 == 4 {
			from = rest
		}
		offset := from[rng.IntN(len(from))]
		x := [4]byte{0xff, 1 << rng.IntN(8), 1 << rng.IntN(8), byte(1 + rng.IntN(255))}[rng.IntN(4)]
		restore := v.flip(t, f, offset, x)
		fn(offset, x)
		restore()
	}
}

// With one changed byte, the index is refused when it is opened, or every read returns
// the right answer or an error. The process does not crash.
//
//test:norace
func TestCrashFlippedByte(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		t.Run(fmt.Sprintf("sealed %v", sealed), func(t *testing.T) { testFlippedByte(t, newVictim(t, sealed)) })
	}
}

func testFlippedByte(t *testing.T, v *victim) {
	seed := campaign.Seed()
	t.Logf("seed %d, %d bytes", seed, len(v.clean))
	rng := rand.New(rand.NewPCG(seed, 0))
	unusable, failed, older := 0, 0, 0
	n := 0
	eachFlip(t, v, campaign.Rounds(100), rng, func(offset int, x byte) {
		n++
		db, err := Open(v.path, Options{ReadOnly: n%2 == 0})
		if err != nil {
			require.ErrorIs(t, err, ErrUnusable, "byte %d ^ %#x", offset, x)
			unusable++
			return
		}
		errs, err := v.check(db, rng)
		require.NoError(t, err, "byte %d ^ %#x", offset, x)
		if errs > 0 {
			failed++
		}
		if db.State().Number < uint64(len(v.batches)) {
			older++
		}
		require.NoError(t, db.Close())
	})
	t.Logf("%d bytes: %d unusable, %d with errors, %d of an older commit", n, unusable, failed, older)
	if n >= 100 { // about a quarter of them is noticed
		require.Positive(t, unusable+failed)
	}
}

// The same, followed by writes, for which bbolt copies and moves damaged data.
//
//test:norace
func TestCrashFlippedByteThenWrite(t *testing.T) {
	for _, sealed := range []bool{false, true} {
		t.Run(fmt.Sprintf("sealed %v", sealed), func(t *testing.T) { testFlippedByteThenWrite(t, newVictim(t, sealed)) })
	}
}

func testFlippedByteThenWrite(t *testing.T, v *victim) {
	whole, err := os.ReadFile(v.path)
	require.NoError(t, err)
	seed := campaign.Seed()
	t.Logf("seed %d, %d bytes", seed, len(v.clean))
	rng := rand.New(rand.NewPCG(seed, 0))
	outcomes := map[string]int{}
	n := campaign.Rounds(20)
	eachFlip(t, v, n, rng, func(offset int, x byte) {
		defer func() { require.NoError(t, os.WriteFile(v.path, whole, 0o600)) }()
		db, err := Open(v.path, Options{})
		if err != nil {
			require.ErrorIs(t, err, ErrUnusable)
			outcomes["unusable"]++
			return
		}
		db.bolt.NoSync = true
		db.limits.leaves = 1 + rng.IntN(200)
		db.limits.rewrite = uint64(rng.IntN(2)) * never
		w := &victim{models: append([]model(nil), v.models...)}
		m := v.models[len(v.models)-1].clone()
		for number := db.State().Number + 1; number <= uint64(len(v.batches)); number++ { // as from the journal
			db.Apply(at(number), v.batches[number-1])
		}
		outcome := "written"
		for n := range 2 {
			from := rng.IntN(victimKeys)
			batch := victimBatch(from, min(victimKeys, from+1+rng.IntN(200)), func(i int) string {
				return fmt.Sprintf("%04d %d %s", i, len(w.models), strings.Repeat("v", 60+i%50))
			})
			m.apply(batch)
			w.models = append(w.models, m.clone())
			db.Apply(at(uint64(len(w.models)-1)), batch)
			if err := db.Checkpoint(); err != nil {
				require.ErrorIs(t, err, backend.ErrCorrupt, "byte %d ^ %#x", offset, x)
				outcome = "refused"
			} else if n == 0 && rng.IntN(2) == 0 {
				if err := db.Compact(t.Context(), nil); err != nil {
					require.ErrorIs(t, err, backend.ErrCorrupt, "byte %d ^ %#x", offset, x)
					outcome = "refused"
				}
			}
			_, err := w.check(db, rng)
			require.NoError(t, err, "byte %d ^ %#x, %s", offset, x, outcome)
		}
		if err := db.Close(); err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt)
		}
		if db, err = Open(v.path, Options{}); err != nil {
			require.ErrorIs(t, err, ErrUnusable)
			outcomes[outcome+", unusable"]++
			return
		}
		// A fold that was refused halfway left newer entries: replay.
		for number := db.State().Number + 1; number < uint64(len(w.models)); number++ {
			db.Apply(at(number), difference(w.models[number-1], w.models[number]))
		}
		_, err = w.check(db, rng)
		require.NoError(t, err, "byte %d ^ %#x, %s, reopened", offset, x, outcome)
		if err := db.Close(); err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt)
		}
		outcomes[outcome]++
	})
	t.Log(outcomes)
	if n >= 20 { // most of them are in data that is not rewritten
		require.Positive(t, outcomes["written"])
	}
}

// difference is the batch between two models.
func difference(from, to model) (batch []Entry) {
	for k := range from {
		if _, ok := to[k]; !ok {
			batch = append(batch, Entry{Key: []byte(k)})
		}
	}
	for k, v := range to {
		if was, ok := from[k]; !ok || was != v {
			batch = append(batch, Entry{Key: []byte(k), Value: []byte(v)})
		}
	}
	return batch
}
