package pack

import (
	"slices"

	"github.com/lineage-store/lineage/structure"
)

// lookup collects the lookup tables of a pack.
type lookup struct {
	content []finger
	numbers uint32
	counts  []uint32 // of numbers, per chapter
	runs    [][]stretch
	ids     []structure.RunID
	latest  map[structure.RunID]int
}

// add adds the objects in a piece of a commit. For a verbatim commit, records are the
// decoded payload.
func (l *lookup) add(number uint64, piece int, records []structure.Record, verbatim bool) {
	for _, r := range records {
		switch r := r.(type) {
		case *structure.Block:
			l.object(r.ID[:], verbatim)
		case *structure.Chunk:
			l.object(r.Key[:], verbatim)
		case *structure.Span:
			l.span(number, piece, r.Ref)
		}
	}
	if verbatim {
		l.numbers++
	}
}

func (l *lookup) object(hash []byte, verbatim bool) {
	l.content = append(l.content, finger{Fingerprint(hash), l.numbers})
	if !verbatim {
		l.numbers++
	}
}

// span adds a span to its run. A gap starts a new entry for the run.
func (l *lookup) span(commit uint64, piece int, ref structure.SpanRef) {
	at, ok := l.latest[ref.Run]
	if ok {
		run := l.runs[at]
		s := &run[len(run)-1]
		switch {
		case s.last()+1 != ref.Seq:
			ok = false
		case s.commit+s.commits-1 != commit:
			l.runs[at] = append(joined(run), stretch{commit: commit, commits: 1, spans: 1, first: ref.Seq})
		default: // still the commit's own stretch
			s.spans++
		}
	}
	if !ok {
		if l.latest == nil {
			l.latest = map[structure.RunID]int{}
		}
		l.latest[ref.Run] = len(l.runs)
		l.runs = append(l.runs, []stretch{{commit: commit, commits: 1, spans: 1, first: ref.Seq, piece: piece}})
		l.ids = append(l.ids, ref.Run)
	}
}

// joined merges the last stretch, which is complete, into the one before it if it has
// the same form.
func joined(run []stretch) []stretch {
	n := len(run) - 1
	if n == 0 {
		return run
	}
	a, b := &run[n-1], &run[n]
	if a.spans != b.spans || a.commit+a.commits != b.commit {
		return run
	}
	a.commits += b.commits
	return run[:n]
}

// chapter records the number of objects in the next chapter.
func (l *lookup) chapter(numbers int) { l.counts = append(l.counts, uint32(numbers)) }

// encode returns the tables, each with its checksum, and the directory.
func (l *lookup) encode(firstCommit uint64) (parts, index []byte) {
	d := &directory{counts: l.counts}
	runs := make([]finger, len(l.runs))
	for i := range l.runs {
		l.runs[i] = joined(l.runs[i])
		runs[i] = finger{runFingerprint(l.ids[i]), uint32(i)}
	}
	d.shared = l.shared(runs)
	parts = d.content.encode(parts, l.content, uint64(l.numbers))
	parts = d.runs.encode(parts, runs, uint64(len(runs)))
	for list := range slices.Chunk(l.runs, runsPerList) {
		start := len(parts)
		parts = appendRuns(parts, list, firstCommit)
		parts = summed(parts, start)
		d.lists = append(d.lists, int64(len(parts)-start))
	}
	return parts, d.encode()
}

// shared returns, by number, the ids of runs that share a fingerprint.
func (l *lookup) shared(runs []finger) map[uint32]structure.RunID {
	by := make(map[uint32]structure.RunID, len(runs))
	common := map[uint32]bool{}
	for _, f := range runs {
		id := l.ids[f.number]
		if other, ok := by[f.print]; ok && other != id {
			common[f.print] = true
		}
		by[f.print] = id
	}
	out := map[uint32]structure.RunID{}
	for _, f := range runs {
		if common[f.print] {
			out[f.number] = l.ids[f.number]
		}
	}
	return out
}
