package pages_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pages"
)

// upTo yields 1 to n, and then an error unless it is nil.
func upTo(n int, err error) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i+1, nil) {
				return
			}
		}
		if err != nil {
			yield(0, err)
		}
	}
}

func TestOf(t *testing.T) {
	for n, want := range map[int][][]int{
		0: nil,
		2: {{1, 2}},
		3: {{1, 2, 3}},
		7: {{1, 2, 3}, {4, 5, 6}, {7}},
	} {
		var got [][]int
		for page, err := range pages.Of(upTo(n, nil), 3) {
			require.NoError(t, err)
			got = append(got, page)
		}
		require.Equal(t, want, got, "of %d elements", n)
	}
}

func TestOfEndsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	var got [][]int
	var failed []error
	for page, err := range pages.Of(upTo(4, broken), 3) {
		got, failed = append(got, page), append(failed, err)
	}
	require.Equal(t, [][]int{{1, 2, 3}, nil}, got)
	require.Equal(t, []error{nil, broken}, failed)
}

func TestOfEndsWithItsReader(t *testing.T) {
	read := 0
	for page, err := range pages.Of(counted(&read), 3) {
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 2}, page)
		break
	}
	require.Equal(t, 3, read)
}

// counted yields numbers without end, and counts them.
func counted(n *int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for more := true; more; *n++ {
			more = yield(*n, nil)
		}
	}
}
