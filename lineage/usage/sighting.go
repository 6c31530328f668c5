package usage

import (
	"encoding/binary"
	"fmt"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/varint"
)

// perRow is the number of sightings or counters in a row.
const perRow = 64

// appendSightings appends sightings in a run, in order.
func appendSightings(b []byte, all []*sighting) []byte {
	before := &sighting{}
	for _, s := range all {
		b = binary.AppendUvarint(b, uint64(s.seq-before.seq))
		if s.keyed {
			b = append(binary.AppendUvarint(b, uint64(s.part)<<1|1), s.key[:]...)
		} else {
			b = binary.AppendUvarint(b, uint64(s.part)<<1)
		}
		b = append(b, s.known)
		for _, n := range [...]int64{s.time - before.time, s.model, s.requests, s.covers, s.cost, s.costs} {
			b = binary.AppendVarint(b, n)
		}
		for k, n := range s.tokens {
			if s.known&(1<<k) != 0 {
				b = binary.AppendVarint(b, n)
			}
		}
		before = s
	}
	return b
}

// decodeSightings calls a function with each of the sightings of a run in a row, in order. They share its memory with the next.
func decodeSightings(run int64, b []byte, do func(*sighting) error) error {
	r := varint.Reader{Rest: b}
	s := sighting{run: run}
	for len(r.Rest) > 0 && !r.Bad {
		s.seq += int64(r.Next())
		part := r.Next()
		s.part, s.keyed, s.key = int64(part>>1), part&1 != 0, answerKey{}
		if s.keyed {
			copy(s.key[:], r.Take(uint64(len(s.key))))
		}
		s.figures = figures{sums: sums{answers: 1}}
		if known := r.Take(1); known != nil {
			s.known = known[0]
		}
		s.time += r.Signed()
		for _, into := range [...]*int64{&s.model, &s.requests, &s.covers, &s.cost, &s.costs} {
			*into = r.Signed()
		}
		for k := range s.tokens {
			if s.known&(1<<k) != 0 {
				s.tokens[k] = r.Signed()
			}
		}
		if r.Bad {
			break
		}
		if err := do(&s); err != nil {
			return err
		}
	}
	if r.Bad {
		return fmt.Errorf("sightings of run %d: %w", run, derivedfile.ErrUseless)
	}
	return nil
}
