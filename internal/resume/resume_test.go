package resume

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

var errAway = errors.New("the reader went away")

// readers counts the readers that were closed.
func readers(closed *int) Open[backend.Reader] {
	return func(context.Context) (Opened[backend.Reader], error) {
		return Opened[backend.Reader]{Interrupted: func(err error) bool { return errors.Is(err, errAway) }, Close: func() { *closed++ }}, nil
	}
}

// states yields the elements of one state after another. Each but the last goes away after some elements.
func states(left []int, states ...[]int) func() iter.Seq2[int, error] {
	n := -1
	return func() iter.Seq2[int, error] {
		n++
		return func(yield func(int, error) bool) {
			for i, v := range states[n] {
				if n < len(left) && i == left[n] {
					yield(0, errAway)
					return
				}
				if !yield(v, nil) {
					return
				}
			}
			if n < len(left) && len(states[n]) <= left[n] {
				yield(0, errAway)
			}
		}
	}
}

func all(t *testing.T, seq iter.Seq2[int, error]) (list []int) {
	t.Helper()
	for v, err := range seq {
		require.NoError(t, err)
		list = append(list, v)
	}
	return list
}

// TestResume continues sequences of each kind in states that have lost or gained elements.
func TestResume(t *testing.T) {
	same := func(v int) int { return v }
	for name, test := range map[string]struct {
		left   []int // how many elements each state yields
		states [][]int
		want   map[string][]int
	}{
		"nothing changed":    {[]int{2, 3}, [][]int{{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}, map[string][]int{"paged": {1, 2, 3, 4}, "ordered": {1, 2, 3, 4}, "appended": {1, 2, 3, 4}, "distinct": {1, 2, 3, 4}}},
		"more at the end":    {[]int{4}, [][]int{{1, 2, 3, 4}, {1, 2, 3, 4, 5}}, map[string][]int{"paged": {1, 2, 3, 4, 5}, "ordered": {1, 2, 3, 4, 5}, "appended": {1, 2, 3, 4, 5}, "distinct": {1, 2, 3, 4, 5}}},
		"fewer at the start": {[]int{3}, [][]int{{1, 2, 3, 4}, {3, 4, 5}}, map[string][]int{"paged": {1, 2, 3, 4, 5}, "ordered": {1, 2, 3, 4, 5}, "appended": {1, 2, 3, 4, 5}, "distinct": {1, 2, 3, 4, 5}}},
		"the last is gone":   {[]int{2}, [][]int{{1, 2, 3, 4}, {3, 4}}, map[string][]int{"paged": {1, 2, 3, 4}, "ordered": {1, 2, 3, 4}, "appended": {1, 2, 3, 4}, "distinct": {1, 2, 3, 4}}},
		"nothing yet":        {[]int{0}, [][]int{{1}, {1, 2}}, map[string][]int{"paged": {1, 2}, "ordered": {1, 2}, "appended": {1, 2}, "distinct": {1, 2}}},
		"equal elements":     {[]int{3}, [][]int{{1, 2, 1, 2, 1}, {1, 2, 1, 2, 1}}, map[string][]int{"appended": {1, 2, 1, 2, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, want := range test.want {
				closed := 0
				open, next := readers(&closed), states(test.left, test.states...)
				begin := func(backend.Reader) iter.Seq2[int, error] { return next() }
				var seq iter.Seq2[int, error]
				switch kind {
				case "paged":
					seq = Paged(t.Context(), open, 0, func(_ backend.Reader, after int) iter.Seq2[int, error] {
						return func(yield func(int, error) bool) {
							for v, err := range next() {
								if err == nil && v <= after {
									continue
								}
								if !yield(v, err) {
									return
								}
							}
						}
					}, same)
				case "ordered":
					seq = ordered(t.Context(), open, begin, func(v, last int) bool { return v > last })
				case "appended":
					seq = appended(t.Context(), open, begin, same)
				case "distinct":
					seq = distinct(t.Context(), open, begin, same)
				}
				require.Equal(t, want, all(t, seq), kind)
				require.Equal(t, len(test.left)+1, closed, "%s: every reader is closed", kind)
			}
		})
	}
}

// TestResumeEnds ends with other errors, with the caller, and when readers go away again and again.
func TestResumeEnds(t *testing.T) {
	closed := 0
	failed := errors.New("failed")
	open := readers(&closed)
	endless := func(err error) iter.Seq2[int, error] {
		return ordered(t.Context(), open, func(backend.Reader) iter.Seq2[int, error] {
			return func(yield func(int, error) bool) { _ = yield(1, nil) && yield(0, err) }
		}, func(v, last int) bool { return v > last })
	}
	for err, want := range map[error]error{failed: failed, errAway: backend.ErrExpired} {
		var got []error
		for _, err := range endless(err) {
			got = append(got, err)
		}
		require.Len(t, got, 2)
		require.NoError(t, got[0])
		require.ErrorIs(t, got[1], want)
	}
	require.Equal(t, 1+maxTries, closed)
	for range endless(errAway) {
		break
	}
	require.Equal(t, 2+maxTries, closed)
	none := Open[backend.Reader](func(context.Context) (Opened[backend.Reader], error) { return Opened[backend.Reader]{}, failed })
	for _, err := range ordered(t.Context(), none, func(backend.Reader) iter.Seq2[int, error] { return nil }, func(v, last int) bool { return v > last }) {
		require.ErrorIs(t, err, failed)
	}
}
