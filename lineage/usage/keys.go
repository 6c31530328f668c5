package usage

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/varint"
)

// keyed is the hash of an answer's key, and the number of a row of sightings that has the answer.
type keyed struct{ hash, row int64 }

// hash returns the part of a key by which its sightings are found. Keys are hashes themselves.
func (k *answerKey) hash() int64 { return int64(binary.BigEndian.Uint64(k[:]) >> 16) }

// Sizes of a row of table keys in bytes. One that grows beyond mostKeys is divided into rows of about someKeys.
const (
	mostKeys = 4000
	someKeys = 2500
)

// addKeys adds rows of sightings to the keys. It returns the hashes that earlier windows had.
func (f *writer) addKeys(ctx context.Context, added []keyed) (earlier map[int64]bool, err error) {
	slices.SortFunc(added, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.row, b.row)) })
	added = slices.Compact(added)
	earlier = make(map[int64]bool)
	var merged []keyed
	for len(added) > 0 {
		start, next, stored, err := f.keysAt(ctx, added[0].hash)
		if err != nil {
			return nil, err
		}
		n := len(added)
		if next != 0 {
			n, _ = slices.BinarySearchFunc(added, next, func(k keyed, hash int64) int { return cmp.Compare(k.hash, hash) })
		}
		merged = merged[:0]
		for _, k := range added[:n] {
			for len(stored) > 0 && stored[0].hash <= k.hash {
				merged, stored = append(merged, stored[0]), stored[1:]
			}
			if last := len(merged) - 1; last >= 0 && merged[last].hash == k.hash && merged[last].row < f.firstRow {
				earlier[k.hash] = true
			}
			merged = append(merged, k)
		}
		added, merged = added[n:], append(merged, stored...)
		if err := f.storeKeys(ctx, start, merged); err != nil {
			return nil, err
		}
	}
	return earlier, nil
}

// keysAt returns the row of table keys for a hash: the hash at which it starts and, if it is not the last one, the start of the next.
func (f *writer) keysAt(ctx context.Context, hash int64) (start, next int64, all []keyed, err error) {
	var b []byte
	_, err = f.Get(ctx, `SELECT start, sightings, (SELECT IFNULL(MIN(n.start), 0) FROM keys n WHERE n.start > k.start) FROM keys k WHERE start <= ? ORDER BY start DESC LIMIT 1`,
		[]any{hash}, &start, &b, &next)
	if err == nil {
		all, err = decodeKeys(start, b)
	}
	return start, next, all, err
}

// storeKeys stores a row of table keys. One that is too large is divided, between different hashes.
func (f *writer) storeKeys(ctx context.Context, start int64, all []keyed) error {
	b := make([]byte, 0, 2*mostKeys)
	size, hash := 0, start
	for _, k := range all {
		size += varint.Len(uint64(k.hash-hash)) + varint.Len(uint64(k.row))
		hash = k.hash
	}
	before := start
	for i, k := range all {
		if size > mostKeys && len(b) >= someKeys && k.hash != all[i-1].hash {
			if err := f.Exec(ctx, `INSERT OR REPLACE INTO keys VALUES (?, ?)`, start, b); err != nil {
				return err
			}
			start, before, b = k.hash, k.hash, b[:0]
		}
		b = binary.AppendUvarint(b, uint64(k.hash-before))
		b = binary.AppendUvarint(b, uint64(k.row))
		before = k.hash
	}
	return f.Exec(ctx, `INSERT OR REPLACE INTO keys VALUES (?, ?)`, start, b)
}

// decodeKeys returns the keys of a row.
func decodeKeys(start int64, b []byte) (all []keyed, err error) {
	all = make([]keyed, 0, len(b)/6)
	r := varint.Reader{Rest: b}
	for k := (keyed{hash: start}); len(r.Rest) > 0; {
		k.hash += int64(r.Next())
		if k.row = int64(r.Next()); r.Bad || k.hash < 0 {
			return nil, fmt.Errorf("keys from %d on: %w", start, derivedfile.ErrUseless)
		}
		all = append(all, k)
	}
	return all, nil
}

// rowsOf returns the numbers of the rows of sightings that may have a key.
func (f *writer) rowsOf(ctx context.Context, key answerKey) (rows []int64, err error) {
	_, _, all, err := f.keysAt(ctx, key.hash())
	for _, k := range all {
		if k.hash == key.hash() {
			rows = append(rows, k.row)
		}
	}
	return rows, err
}
