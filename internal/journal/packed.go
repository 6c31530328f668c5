package journal

import (
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/structure"
)

// ErrLookup is returned if the lookup tables of a pack are damaged.
var ErrLookup = pack.ErrLookup

// ErrUnlisted is returned for a pack without lookup tables.
var ErrUnlisted = pack.ErrUnlisted

// Fingerprint returns the part of a content hash that packs store.
func Fingerprint(hash []byte) uint32 { return lookup.Fingerprint(hash) }

// Found is a block or chunk in a pack, with the position of its record.
type Found struct {
	Commit uint64
	Frame  Position
	Offset int64
	Record structure.Record
}

// DropCache drops everything decoded from packs except dictionaries.
func (j *Journal) DropCache() { j.cache.DropContent() }

// packs yields the packs with segments up to last, newest first. The first may
// contain later segments too.
func (v *FileSet) packs(last uint32) iter.Seq[*pack.File] {
	return func(yield func(*pack.File) bool) {
		for _, s := range slices.Backward(v.segments) {
			if s.pack != nil && s.segment <= last && !yield(s.pack) {
				return
			}
		}
	}
}

// Find returns the last block or chunk from before a commit whose hash starts with
// start, in packs up to a segment.
func (v *FileSet) Find(last uint32, kind structure.Kind, start []byte, before uint64) (Found, bool, error) {
	for p := range v.packs(last) {
		if p.FirstCommit >= before {
			continue
		}
		if o, ok, err := p.Find(kind, start, before); err != nil || ok {
			return Found{o.Commit, Position{o.Segment, o.Frame}, o.Offset, o.Record}, ok, err
		}
	}
	return Found{}, false, nil
}

// Spans are consecutive spans of a run in a pack.
type Spans struct {
	*pack.RunSpans
	pack *pack.File
}

// Has reports whether it contains the span at a place of the run.
func (s Spans) Has(place uint64) bool {
	return s.RunSpans != nil && s.First <= place && place <= s.Last
}

// UpTo returns the spans up to a place.
func (s Spans) UpTo(last uint64) Spans {
	if last < s.Last {
		s.RunSpans = s.RunSpans.UpTo(last)
	}
	return s
}

// Position returns the position of the frame with the span at a place.
func (s Spans) Position(place uint64) (Position, error) {
	segment, offset, err := s.pack.Position(s.Commit(place))
	return Position{segment, offset}, err
}

// Run yields the spans of a run from before a commit, in packs up to a segment, the
// latest first. If near is close to the wanted places, less is read.
func (v *FileSet) Run(last uint32, id structure.RunID, near, before uint64) iter.Seq2[Spans, error] {
	return func(yield func(Spans, error) bool) {
		for p := range v.packs(last) {
			if p.FirstCommit >= before {
				continue
			}
			found, err := p.Run(id, near)
			if err != nil {
				yield(Spans{}, err)
				return
			}
			for _, s := range slices.Backward(found) {
				if p.LastCommit >= before {
					s = s.Before(before)
				}
				if s != nil && !yield(Spans{s, p}, nil) {
					return
				}
			}
		}
	}
}

// Commit returns the position of a commit if a pack up to a segment has it.
func (v *FileSet) Commit(last uint32, number uint64) (Position, bool, error) {
	for p := range v.packs(last) {
		if p.FirstCommit <= number && number <= p.LastCommit {
			segment, offset, err := p.Position(number)
			return Position{segment, offset}, err == nil, err
		}
	}
	return Position{}, false, nil
}

// Fingerprints yields the fingerprints of all content in packs up to a segment.
func (v *FileSet) Fingerprints(last uint32) iter.Seq2[uint32, error] {
	return func(yield func(uint32, error) bool) {
		for p := range v.packs(last) {
			for print, err := range p.Fingerprints() {
				if !yield(print, err) || err != nil {
					return
				}
			}
		}
	}
}

// Findable returns the last segment up to which the journal consists of packs with
// sound lookup tables, given a known lower bound. The error explains why the next
// pack does not count.
func (v *FileSet) Findable(known uint32) (uint32, error) {
	for _, s := range v.segments {
		if s.pack == nil {
			break
		}
		if s.last <= known {
			continue
		}
		if err := s.pack.CheckSums(); err != nil {
			return known, err
		}
		known = s.last
	}
	return known, nil
}

// Listed returns the last segment up to which the journal consists of packs with lookup tables.
func (v *FileSet) Listed() (last uint32) {
	for _, s := range v.segments {
		if s.pack == nil || !s.pack.Listed() {
			break
		}
		last = s.last
	}
	return last
}

// Objects returns how many ids and bodies the pack with a segment has.
func (v *FileSet) Objects(segment uint32) (uint64, error) {
	s := v.find(segment)
	if s == nil || s.pack == nil {
		return 0, nil
	}
	return s.pack.Objects()
}

// CheckSums yields damage in the lookup tables of packs up to a segment.
func (v *FileSet) CheckSums(last uint32) iter.Seq[error] {
	return func(yield func(error) bool) {
		for p := range v.packs(last) {
			if err := p.CheckSums(); err != nil && !yield(err) {
				return
			}
		}
	}
}

// PackDamage yields the names of damaged packs, even if they can be read, and the
// damage.
func (v *FileSet) PackDamage() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, s := range v.segments {
			if s.pack == nil {
				continue
			}
			if err := s.pack.Damage(); err != nil && !yield(s.name, err) {
				return
			}
		}
	}
}

// Check compares the lookup tables of a pack with its commits.
type Check = pack.Check

// NewCheck starts a check of the pack with a segment, or returns nil if the segment
// is not packed.
func (v *FileSet) NewCheck(segment uint32) (*Check, error) {
	s := v.find(segment)
	if s == nil || s.pack == nil {
		return nil, nil
	}
	return s.pack.NewCheck()
}

// PackedSpans are the spans of a commit in a pack.
type PackedSpans = pack.Spans
