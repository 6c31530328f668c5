package bench

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/lineage"
)

const (
	workLimitsRead   = "what reading a message cannot do without"
	workLimitsPacked = "what finding packed content cannot do without"

	partRead         = "reading its bytes of the journal"
	partChecksum     = "CRC-32C of them"
	partHash         = "SHA-256 of the message"
	partResult       = "memory for the message"
	partRecursive    = "SQLite: the recursive query"
	partRange        = "SQLite: a range of rows by key"
	partPackedHashes = "shortened hashes and places, sorted, compressed"
	partInside       = "SQLite: the same, no row handed out"
)

// limitsOfReading measures, per message, the parts of reading a verified history, and the time per
// row of the compared database: with the documented query, with the simplest query, and without
// returning rows.
func (r *run) limitsOfReading(ctx context.Context) (err error) {
	n := min(r.config.Sizes[len(r.config.Sizes)-1], 20_000)
	m := newMessages(&r.config, streamBase)
	all := m.some(n)
	const together = 500 // messages per read
	f, err := r.journalLike(n)
	if err != nil {
		return err
	}
	defer f.Close()
	frame := make([]byte, r.extendBytes)
	buf := make([]byte, together*len(frame))
	kept, at := make([][]byte, together), 0
	var seen uint32
	defer func() { runtime.KeepAlive(seen) }()
	part := func(name string, one func(message []byte)) contender {
		return contender{system: name, durability: normal, round: func(context.Context) (int, error) {
			for _, message := range all {
				one(message)
			}
			return n, nil
		}}
	}
	contenders := []contender{
		{system: partRead, durability: normal, round: func(context.Context) (int, error) {
			for at := 0; at < n; at += together {
				k := min(together, n-at) * len(frame)
				if _, err := f.ReadAt(buf[:k], int64(at*len(frame))); err != nil {
					return 0, err
				}
			}
			return n, nil
		}},
		part(partChecksum, func(message []byte) {
			copy(frame, message)
			seen += crc32.Checksum(frame, castagnoli)
		}),
		part(partHash, func(message []byte) {
			sum := sha256.Sum256(message)
			seen += uint32(sum[0])
		}),
		part(partResult, func(message []byte) {
			kept[at%len(kept)] = slices.Clone(message) // retained after the call
			at++
		}),
	}
	ours, err := r.open(ctx, lineageSystem(normal))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	table, err := r.open(ctx, sqliteSystem(normal))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.close()) }()
	for _, o := range []*opened{ours, table} {
		h, err := o.store.start(ctx)
		if err != nil {
			return err
		}
		if err := h.load(ctx, all); err != nil {
			return err
		}
		c := reading(&base{opened: o, history: h}, 0, 1, n)
		whole := c.round
		c.round = func(ctx context.Context) (int, error) {
			_, err := whole(ctx)
			return n, err
		}
		if o == table {
			c.system = partRecursive
		}
		contenders = append(contenders, c)
	}
	s := table.store.(*sqlStore)
	for name, query := range map[string]string{
		partRange:  `SELECT data FROM messages WHERE rowid BETWEEN 1 AND ? ORDER BY rowid`,
		partInside: `SELECT sum(length(data)) FROM messages WHERE rowid BETWEEN 1 AND ?`,
	} {
		statement, err := s.db.PrepareContext(ctx, query)
		if err != nil {
			return err
		}
		defer statement.Close()
		rows := n
		if name == partInside {
			rows = 1
		}
		contenders = append(contenders, contender{system: name, durability: normal, round: func(ctx context.Context) (int, error) {
			got, err := rowsOf(ctx, statement, n)
			if err == nil && got != rows {
				err = errWrongCount{name, got, rows}
			}
			return n, err
		}})
	}
	slices.SortFunc(contenders[len(contenders)-2:], func(a, b contender) int { return len(a.system) - len(b.system) })
	return r.compare(ctx, subject{workload: workLimitsRead, size: n}, contenders)
}

// journalLike creates a file with as many bytes as n extends write.
func (r *run) journalLike(n int) (*os.File, error) {
	dir, err := r.directory("frames")
	if err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(dir, "frames"))
	if err != nil {
		return nil, err
	}
	buf := make([]byte, r.extendBytes)
	for range n {
		if _, err := f.Write(buf); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// limitsOfPacking reports the minimum size of an index from hashes to places: hashes truncated to
// eight bytes, sorted, stored as compressed differences, with a number for each place. No
// searchable form is much smaller.
func (r *run) limitsOfPacking(context.Context) error {
	n := min(r.config.StoreMessages, 200_000)
	keys := make([]uint64, n)
	for i := range keys {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it does not fail
		keys[i] = binary.BigEndian.Uint64(b[:])
	}
	slices.Sort(keys)
	var out []byte
	last := uint64(0)
	for i, k := range keys {
		out = binary.AppendUvarint(out, k-last)
		out = append(out, byte(k>>8), byte(k>>16), byte(i)) // as random as a place is: three bytes number 16 million
		last = k
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	r.fact(Row{
		Workload: workLimitsPacked, System: partPackedHashes, Size: n, Unit: unitPerItem,
		Value: float64(len(w.EncodeAll(out, nil))) / float64(n),
	})
	return w.Close()
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
