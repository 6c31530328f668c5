package structure

import (
	"errors"
	"fmt"
	"slices"
)

// ErrBrokenAncestry is returned when runs do not form a line back to a root.
var ErrBrokenAncestry = errors.New("broken ancestry")

// RunInfo is a run together with what lies behind it.
type RunInfo struct {
	Run
	// Depth is how many spans a history has before the first of this run.
	Depth uint64
	// Digest is the digest of the history before the first of this run.
	Digest Digest
}

// Position returns the place of a span of the run in its whole history, from 1.
func (r RunInfo) Position(seq uint64) uint64 { return r.Depth + seq }

// RunLookup returns what is known of a run.
type RunLookup func(RunID) (RunInfo, error)

// Segment is a stretch of one run: the spans First to Last.
type Segment struct {
	Run         RunInfo
	First, Last uint64
}

// Len returns how many spans the segment has.
func (s Segment) Len() uint64 { return s.Last - s.First + 1 }

// Window selects positions of a history, counted from 1.
type Window struct {
	// From and To are the first and last position wanted. A zero From is the
	// start and a zero To the end.
	From, To uint64
	// Last, when not zero, asks for only that many at the end of what From and
	// To leave.
	Last uint64
}

// bounds returns the window as first and last position of a history of depth
// spans. It is empty when first exceeds last.
func (w Window) bounds(depth uint64) (first, last uint64) {
	first, last = max(w.From, 1), depth
	if w.To != 0 {
		last = min(last, w.To)
	}
	if w.Last != 0 && last > w.Last {
		first = max(first, last-w.Last+1)
	}
	return first, last
}

// Position returns the place of a span in its history, from 1; the empty
// position is 0.
func Position(ref SpanRef, runs RunLookup) (uint64, error) {
	if ref.IsZero() {
		return 0, nil
	}
	_, position, err := locate(ref, runs)
	return position, err
}

// locate returns the run of a position that is not the empty one, and its place
// in its history. It refuses a run whose depth and parent disagree about whether
// anything lies before it: that history would come out cut short.
func locate(ref SpanRef, runs RunLookup) (RunInfo, uint64, error) {
	run, err := runs(ref.Run)
	if err != nil {
		return RunInfo{}, 0, err
	}
	position := run.Position(ref.Seq)
	if position <= run.Depth || (run.Depth == 0) != run.Parent.IsZero() {
		return RunInfo{}, 0, fmt.Errorf("%w: %v in a run of depth %d after %v", ErrBrokenAncestry, ref, run.Depth, run.Parent)
	}
	return run, position, nil
}

// Segments returns the stretches of runs that make up the window of the history
// that ends at tip, oldest first. It looks up one run for each fork passed
// through and stops at the start of the window.
func Segments(tip SpanRef, w Window, runs RunLookup) ([]Segment, error) {
	if tip.IsZero() {
		return nil, nil
	}
	run, position, err := locate(tip, runs)
	if err != nil {
		return nil, err
	}
	first, last := w.bounds(position)
	if first > last {
		return nil, nil
	}
	var segments []Segment
	for {
		if run.Depth+1 <= last {
			segments = append(segments, Segment{
				Run:   run,
				First: max(first, run.Depth+1) - run.Depth,
				Last:  min(last, run.Position(tip.Seq)) - run.Depth,
			})
		}
		if run.Depth+1 <= first {
			slices.Reverse(segments)
			return segments, nil
		}
		if tip, run, err = parentRun(run, runs); err != nil {
			return nil, err
		}
	}
}

// parentRun returns the position that a run starts after and that position's
// run. Depths must agree and so shrink with every step: a damaged pointer cannot
// lead in circles.
func parentRun(run RunInfo, runs RunLookup) (SpanRef, RunInfo, error) {
	parent, position, err := locate(run.Parent, runs)
	if err == nil && position != run.Depth {
		err = fmt.Errorf("%w: run %v of depth %d after %v", ErrBrokenAncestry, run.ID, run.Depth, run.Parent)
	}
	return run.Parent, parent, err
}

// At returns the span at a position of the history that ends at tip; position 0
// is the empty position.
func At(tip SpanRef, position uint64, runs RunLookup) (SpanRef, error) {
	if position == 0 {
		return SpanRef{}, nil
	}
	segments, err := Segments(tip, Window{From: position, To: position}, runs)
	if err != nil {
		return SpanRef{}, err
	}
	if len(segments) == 0 {
		return SpanRef{}, fmt.Errorf("%w: no position %d before %v", ErrOutOfRange, position, tip)
	}
	return SpanRef{Run: segments[0].Run.ID, Seq: segments[0].First}, nil
}

// ErrOutOfRange is returned for a position that a history does not have.
var ErrOutOfRange = errors.New("position out of range")

// CommonAncestor returns the last span that the histories ending at a and b
// share, or the empty position. It looks at runs, each once, and not at spans.
func CommonAncestor(a, b SpanRef, runs RunLookup) (SpanRef, error) {
	if a.IsZero() || b.IsZero() {
		return SpanRef{}, nil
	}
	ra, _, err := locate(a, runs)
	if err != nil {
		return SpanRef{}, err
	}
	rb, _, err := locate(b, runs)
	if err != nil {
		return SpanRef{}, err
	}
	for a.Run != b.Run {
		// The deeper run cannot lie on the other's history: leave it.
		if ra.Depth < rb.Depth {
			a, ra, b, rb = b, rb, a, ra
		}
		if ra.Depth == 0 {
			return SpanRef{}, nil
		}
		if a, ra, err = parentRun(ra, runs); err != nil {
			return SpanRef{}, err
		}
	}
	return SpanRef{Run: a.Run, Seq: min(a.Seq, b.Seq)}, nil
}

// IsAncestor reports whether span lies on the history that ends at tip. The
// empty position lies on every history.
func IsAncestor(span, tip SpanRef, runs RunLookup) (bool, error) {
	common, err := CommonAncestor(span, tip, runs)
	return common == span, err
}
