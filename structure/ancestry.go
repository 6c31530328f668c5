package structure

import (
	"errors"
	"fmt"
	"slices"
)

// ErrBrokenAncestry is returned when runs do not form a line back to a root.
var ErrBrokenAncestry = errors.New("broken ancestry")

// RunInfo is a run with the depth and digest of the history before it.
type RunInfo struct {
	Run
	// Depth is the number of spans before the first span of this run.
	Depth uint64
	// Digest is the digest of the history before the first span of this run.
	Digest Digest
}

// Position returns the position of a span of the run in its whole history, from
// 1.
func (r RunInfo) Position(seq uint64) uint64 { return r.Depth + seq }

// RunLookup returns information about a run.
type RunLookup func(RunID) (RunInfo, error)

// Segment is a range of one run: the spans First to Last.
type Segment struct {
	Run         RunInfo
	First, Last uint64
}

// Len returns the number of spans in the segment.
func (s Segment) Len() uint64 { return s.Last - s.First + 1 }

// Window selects positions of a history, counted from 1.
type Window struct {
	// From and To are the first and last position. A zero From is the start and
	// a zero To the end.
	From, To uint64
	// Last, if not zero, limits the window to that many positions at its end.
	Last uint64
}

// bounds returns the first and last position of the window in a history of depth
// spans. The window is empty if first exceeds last.
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

// Position returns the position of a span in its history, from 1; the empty
// position is 0.
func Position(ref SpanRef, runs RunLookup) (uint64, error) {
	if ref.IsZero() {
		return 0, nil
	}
	_, position, err := locate(ref, runs)
	return position, err
}

// locate returns the run of a non-empty position and its place in the history.
// It refuses a run whose depth and parent disagree about whether it has a
// history before it: that history would be truncated.
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

// Segments returns the segments of runs in a window of the history that ends at
// tip, oldest first. It looks up one run per fork and stops at the start of the
// window.
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

// parentRun returns the position after which a run starts, and its run. Depths
// must match and therefore decrease with every step: a damaged parent cannot
// cause a loop.
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

// ErrOutOfRange is returned for a position outside a history.
var ErrOutOfRange = errors.New("position out of range")

// CommonAncestor returns the last span that the histories ending at a and b
// share, or the empty position. It looks up each run once, and no spans.
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
		// The deeper run cannot be in the other history: go to its parent.
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

// IsAncestor reports whether span is in the history that ends at tip. The empty
// position is in every history.
func IsAncestor(span, tip SpanRef, runs RunLookup) (bool, error) {
	common, err := CommonAncestor(span, tip, runs)
	return common == span, err
}
