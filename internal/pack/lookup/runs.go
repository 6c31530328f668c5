package lookup

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/varint"
)

// runsPerList is the number of runs that are read together.
const runsPerList = 64

// Stretch is a range of consecutive commits that each added the same number of spans
// to a run.
type Stretch struct {
	Commit, Commits uint64
	Spans           uint64 // per commit
	First           uint64 // place of the first span
	// Piece is the piece of the commit with the first span: 0 is in the chapter where
	// the commit begins. It is set for the first stretch of a run.
	Piece int
}

func (s *Stretch) Last() uint64 { return s.First + s.Commits*s.Spans - 1 }

// appendRuns writes a list of runs, ordered by their first commits. For each run: the difference of its first
// commit to that of the run before × 2, plus 1 if both are one stretch and differ in nothing else. Otherwise:
// the number of its stretches, its first place and its piece. For each stretch: the number of commits skipped
// since the one before × 4, plus 1 if it has several commits and 2 if it has several spans per commit; then, if
// so, the number of commits less 2, and of spans less 2.
func appendRuns(dst []byte, list [][]Stretch, commit uint64) []byte {
	for i, run := range list {
		next := run[0].Commit
		differ := (next - commit) << 1
		commit = next
		if i > 0 && alike(list[i-1], run) {
			dst = binary.AppendUvarint(dst, differ|1)
			continue
		}
		dst = binary.AppendUvarint(dst, differ)
		dst = binary.AppendUvarint(dst, uint64(len(run)))
		dst = binary.AppendUvarint(dst, run[0].First)
		dst = binary.AppendUvarint(dst, uint64(run[0].Piece))
		for _, s := range run {
			v := (s.Commit - next) << 2
			if s.Commits > 1 {
				v |= 1
			}
			if s.Spans > 1 {
				v |= 2
			}
			dst = binary.AppendUvarint(dst, v)
			if s.Commits > 1 {
				dst = binary.AppendUvarint(dst, s.Commits-2)
			}
			if s.Spans > 1 {
				dst = binary.AppendUvarint(dst, s.Spans-2)
			}
			next = s.Commit + s.Commits
		}
	}
	return dst
}

// alike reports whether two runs are one stretch each, and differ in their commits only.
func alike(a, b []Stretch) bool {
	if len(a) != 1 || len(b) != 1 {
		return false
	}
	s := a[0]
	s.Commit = b[0].Commit
	return s == b[0]
}

// readRuns decodes a list of n runs.
func readRuns(b []byte, n int, h layout.Header) ([][]Stretch, error) {
	v := varint.Reader{Rest: b}
	commit := h.FirstCommit
	var list [][]Stretch
	for i := range n {
		differ := v.AtMost(h.LastCommit<<1 | 1)
		commit += differ >> 1
		if differ&1 != 0 {
			if v.Bad || i == 0 || len(list[i-1]) != 1 {
				return nil, ErrMalformed
			}
			s := list[i-1][0]
			if s.Commit = commit; commit+s.Commits-1 > h.LastCommit {
				return nil, ErrMalformed
			}
			list = append(list, []Stretch{s})
			continue
		}
		stretches := v.AtMost(uint64(len(v.Rest)))
		if stretches == 0 {
			return nil, ErrMalformed
		}
		run := make([]Stretch, 0, stretches)
		place := v.AtMost(1<<64 - 1)
		next, piece := commit, int(v.AtMost(1<<31))
		for range stretches {
			head := v.AtMost(1 << 62)
			s := Stretch{Commit: next + head>>2, Commits: 1, Spans: 1, First: place, Piece: piece}
			piece = 0
			if head&1 != 0 {
				s.Commits = v.AtMost(1<<40) + 2
			}
			if head&2 != 0 {
				s.Spans = v.AtMost(1<<30) + 2
			}
			next = s.Commit + s.Commits
			if v.Bad || next > h.LastCommit+1 || s.Commits > 1<<62/s.Spans || place+s.Commits*s.Spans-1 < place {
				return nil, ErrMalformed
			}
			place += s.Commits * s.Spans
			run = append(run, s)
		}
		list = append(list, run)
	}
	if v.Bad || len(v.Rest) > 0 {
		return nil, ErrMalformed
	}
	return list, nil
}
