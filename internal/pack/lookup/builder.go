// Package lookup has the tables in which a pack finds its own content and spans, so that the index need not. They
// follow the table of chapters:
//
//   - buckets of content: the fingerprint and number of every block and chunk. Objects
//     are numbered in the order of their records; a verbatim payload has one number
//     for all of its objects;
//   - buckets of runs: the fingerprint and number of every run with spans in the pack;
//   - lists of runs, 64 per list: which commits contain which places of the run;
//   - the directory: how many numbers each chapter has, and the sizes of the tables.
//
// A fingerprint is four bytes of a hash. A match is read and compared with the full
// key, so a lookup never returns another object.
package lookup

import (
	"slices"

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// Builder collects the lookup tables of a pack.
type Builder struct {
	Content []Finger // of every block and chunk
	numbers uint32
	counts  []uint32          // of numbers, per chapter
	Runs    [][]Stretch       // with the spans of each run
	IDs     []structure.RunID // of the runs
	latest  map[structure.RunID]int
}

// Add adds the objects in a piece of a commit. For a verbatim commit, records are the
// decoded payload.
func (l *Builder) Add(number uint64, piece int, records []structure.Record, verbatim bool) {
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

func (l *Builder) object(hash []byte, verbatim bool) {
	l.Content = append(l.Content, Finger{Fingerprint(hash), l.numbers})
	if !verbatim {
		l.numbers++
	}
}

// span adds a span to its run. A gap starts a new entry for the run.
func (l *Builder) span(commit uint64, piece int, ref structure.SpanRef) {
	at, ok := l.latest[ref.Run]
	if ok {
		run := l.Runs[at]
		s := &run[len(run)-1]
		switch {
		case s.Last()+1 != ref.Seq:
			ok = false
		case s.Commit+s.Commits-1 != commit:
			l.Runs[at] = append(joined(run), Stretch{Commit: commit, Commits: 1, Spans: 1, First: ref.Seq})
		default: // still the commit's own stretch
			s.Spans++
		}
	}
	if !ok {
		if l.latest == nil {
			l.latest = map[structure.RunID]int{}
		}
		l.latest[ref.Run] = len(l.Runs)
		l.Runs = append(l.Runs, []Stretch{{Commit: commit, Commits: 1, Spans: 1, First: ref.Seq, Piece: piece}})
		l.IDs = append(l.IDs, ref.Run)
	}
}

// joined merges the last stretch, which is complete, into the one before it if it has
// the same form.
func joined(run []Stretch) []Stretch {
	n := len(run) - 1
	if n == 0 {
		return run
	}
	a, b := &run[n-1], &run[n]
	if a.Spans != b.Spans || a.Commit+a.Commits != b.Commit {
		return run
	}
	a.Commits += b.Commits
	return run[:n]
}

// Chapter records the number of objects in the next chapter.
func (l *Builder) Chapter(numbers int) { l.counts = append(l.counts, uint32(numbers)) }

// Encode returns the tables, each with its checksum, and the directory.
func (l *Builder) Encode(firstCommit uint64) (parts, index []byte) {
	d := &Directory{counts: l.counts}
	runs := make([]Finger, len(l.Runs))
	for i := range l.Runs {
		l.Runs[i] = joined(l.Runs[i])
		runs[i] = Finger{RunFingerprint(l.IDs[i]), uint32(i)}
	}
	d.shared = l.shared(runs)
	parts = d.Content.encode(parts, l.Content, uint64(l.numbers))
	parts = d.Runs.encode(parts, runs, uint64(len(runs)))
	for list := range slices.Chunk(l.Runs, runsPerList) {
		start := len(parts)
		parts = appendRuns(parts, list, firstCommit)
		parts = layout.AppendSum(parts, start)
		d.lists = append(d.lists, int64(len(parts)-start))
	}
	return parts, d.encode()
}

// shared returns, by number, the ids of runs that share a fingerprint.
func (l *Builder) shared(runs []Finger) map[uint32]structure.RunID {
	runOf := make(map[uint32]structure.RunID, len(runs))
	common := map[uint32]bool{}
	for _, f := range runs {
		id := l.IDs[f.Number]
		if other, ok := runOf[f.Print]; ok && other != id {
			common[f.Print] = true
		}
		runOf[f.Print] = id
	}
	out := map[uint32]structure.RunID{}
	for _, f := range runs {
		if common[f.Print] {
			out[f.Number] = l.IDs[f.Number]
		}
	}
	return out
}
