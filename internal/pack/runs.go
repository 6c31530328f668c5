package pack

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/internal/varint"
)

// stretch is a range of consecutive commits that each added the same number of spans
// to a run.
type stretch struct {
	commit, commits uint64
	spans           uint64 // per commit
	first           uint64 // place of the first span
	// piece is the piece of the commit with the first span: 0 is in the chapter where
	// the commit begins. It is set for the first stretch of a run.
	piece int
}

func (s *stretch) last() uint64 { return s.first + s.commits*s.spans - 1 }

// appendRuns writes a list of runs, ordered by their first commits. For each run: the
// number of its stretches; its first place; its first commit, as the difference to
// that of the run before; its piece. For each stretch: the number of commits skipped
// since the one before × 4, plus 1 if it has several commits and 2 if it has several
// spans per commit; then, if so, the number of commits less 2, and of spans less 2.
func appendRuns(dst []byte, list [][]stretch, commit uint64) []byte {
	for _, run := range list {
		dst = binary.AppendUvarint(dst, uint64(len(run)))
		dst = binary.AppendUvarint(dst, run[0].first)
		next := run[0].commit
		dst = binary.AppendUvarint(dst, next-commit)
		dst = binary.AppendUvarint(dst, uint64(run[0].piece))
		commit = next
		for _, s := range run {
			v := (s.commit - next) << 2
			if s.commits > 1 {
				v |= 1
			}
			if s.spans > 1 {
				v |= 2
			}
			dst = binary.AppendUvarint(dst, v)
			if s.commits > 1 {
				dst = binary.AppendUvarint(dst, s.commits-2)
			}
			if s.spans > 1 {
				dst = binary.AppendUvarint(dst, s.spans-2)
			}
			next = s.commit + s.commits
		}
	}
	return dst
}

// readRuns decodes a list of n runs.
func readRuns(b []byte, n int, h Header) ([][]stretch, error) {
	v := varint.Reader{Rest: b}
	commit := h.FirstCommit
	var list [][]stretch
	for range n {
		stretches := v.AtMost(uint64(len(v.Rest)))
		if stretches == 0 {
			return nil, errLookup
		}
		run := make([]stretch, 0, stretches)
		place := v.AtMost(1<<64 - 1)
		commit += v.AtMost(h.LastCommit)
		next, piece := commit, int(v.AtMost(1<<31))
		for range stretches {
			head := v.AtMost(1 << 62)
			s := stretch{commit: next + head>>2, commits: 1, spans: 1, first: place, piece: piece}
			piece = 0
			if head&1 != 0 {
				s.commits = v.AtMost(1<<40) + 2
			}
			if head&2 != 0 {
				s.spans = v.AtMost(1<<30) + 2
			}
			next = s.commit + s.commits
			if v.Bad || next > h.LastCommit+1 || s.commits > 1<<62/s.spans || place+s.commits*s.spans-1 < place {
				return nil, errLookup
			}
			place += s.commits * s.spans
			run = append(run, s)
		}
		list = append(list, run)
	}
	if v.Bad || len(v.Rest) > 0 {
		return nil, errLookup
	}
	return list, nil
}
