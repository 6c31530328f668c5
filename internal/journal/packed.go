package journal

import (
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/pack"
	"github.com/lineage-store/lineage/structure"
)

// ErrLookup is returned when what finds content and spans in a pack is damaged.
var ErrLookup = pack.ErrLookup

// ErrUnlisted is returned for a pack that does not find what it holds.
var ErrUnlisted = pack.ErrUnlisted

// Fingerprint is what packs know the hash of content by.
func Fingerprint(hash []byte) uint32 { return pack.Fingerprint(hash) }

// Found is a block or chunk in a pack, and where its record stands.
type Found struct {
	Commit uint64
	Frame  Position
	Offset int64
	Record structure.Record
}

// Cool lets go of what was decoded of packs, bases excepted.
func (j *Journal) Cool() { j.cache.Cool() }

// packs yields the packs that stand for segments up to the last, newest first. One
// may stand for later ones as well.
func (v *View) packs(last uint32) iter.Seq[*pack.File] {
	return func(yield func(*pack.File) bool) {
		for _, s := range slices.Backward(v.segments) {
			if s.pack != nil && s.segment <= last && !yield(s.pack) {
				return
			}
		}
	}
}

// Find returns the last block, or chunk, in packs up to a segment that came before
// a commit and whose hash begins so.
func (v *View) Find(last uint32, kind structure.Kind, start []byte, before uint64) (Found, bool, error) {
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

// Spans are spans of a run that follow each other in a pack.
type Spans struct {
	*pack.RunSpans
	pack *pack.File
}

// Has reports whether the span at a place of the run is among them.
func (s Spans) Has(place uint64) bool {
	return s.RunSpans != nil && s.First <= place && place <= s.Last
}

// UpTo returns those up to a place.
func (s Spans) UpTo(last uint64) Spans {
	if last < s.Last {
		s.RunSpans = s.RunSpans.UpTo(last)
	}
	return s
}

// Position returns where the frame is that holds the span at a place.
func (s Spans) Position(place uint64) (Position, error) {
	segment, offset, err := s.pack.Position(s.Commit(place))
	return Position{segment, offset}, err
}

// Run yields the spans of a run in packs up to a segment that came before a commit,
// the latest first. A place near those that are wanted makes it read less.
func (v *View) Run(last uint32, id structure.RunID, near, before uint64) iter.Seq2[Spans, error] {
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

// Commit returns where the frame of a commit is, if a pack up to a segment has it.
func (v *View) Commit(last uint32, number uint64) (Position, bool, error) {
	for p := range v.packs(last) {
		if p.FirstCommit <= number && number <= p.LastCommit {
			segment, offset, err := p.Position(number)
			return Position{segment, offset}, err == nil, err
		}
	}
	return Position{}, false, nil
}

// Fingerprints yields those of all content in packs up to a segment.
func (v *View) Fingerprints(last uint32) iter.Seq2[uint32, error] {
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

// Findable returns up to which segment the journal is packs that find what they
// hold, given up to which it is known to be. An error says what is wrong with the
// pack behind.
func (v *View) Findable(known uint32) (uint32, error) {
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

// Packed returns up to which segment the journal is packs.
func (v *View) Packed() (last uint32) {
	for _, s := range v.segments {
		if s.pack == nil {
			break
		}
		last = s.last
	}
	return last
}

// CheckSums yields what is wrong with the checksums and form of what finds things in
// packs up to a segment.
func (v *View) CheckSums(last uint32) iter.Seq[error] {
	return func(yield func(error) bool) {
		for p := range v.packs(last) {
			if err := p.CheckSums(); err != nil && !yield(err) {
				return
			}
		}
	}
}

// PackDamage yields what is wrong with the files of packs that are read all the same.
// It yields the name of each.
func (v *View) PackDamage() iter.Seq2[string, error] {
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

// Check compares what finds things in a pack with its commits.
type Check = pack.Check

// NewCheck begins a check of the pack that stands for a segment; nil if none does.
func (v *View) NewCheck(segment uint32) (*Check, error) {
	s := v.find(segment)
	if s == nil || s.pack == nil {
		return nil, nil
	}
	return s.pack.NewCheck()
}

// PackedSpans are the spans of a commit in a pack.
type PackedSpans = pack.Spans
