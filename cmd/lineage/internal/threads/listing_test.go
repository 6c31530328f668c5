package threads

import (
	"errors"
	"iter"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/records"
)

// A list is read and shown by pages, and the last record shown has the token of the last thread, if there are more.
func TestListByPages(t *testing.T) {
	for _, c := range []struct {
		name        string
		total       int
		limit       int
		gone        func(i int) bool
		shown, last int
		next        string
	}{
		{"none", 0, 0, nil, 0, 0, ""},
		{"all", 3*listedAtOnce + 1, 0, nil, 3*listedAtOnce + 1, 3 * listedAtOnce, ""},
		{"limited", 10, 3, nil, 3, 2, "2"},
		{"limited to all", 10, 10, nil, 10, 9, ""},
		{"limited to a page", 2 * listedAtOnce, listedAtOnce, nil, listedAtOnce, listedAtOnce - 1, strconv.Itoa(listedAtOnce - 1)},
		{"limited to more than a page", 3 * listedAtOnce, listedAtOnce + 1, nil, listedAtOnce + 1, listedAtOnce, strconv.Itoa(listedAtOnce)},
		{"the last is gone", 10, 3, func(i int) bool { return i == 2 }, 2, 1, "2"},
		{"the last page is gone", 3 * listedAtOnce, listedAtOnce + 1, func(i int) bool { return i == listedAtOnce }, listedAtOnce, listedAtOnce - 1, strconv.Itoa(listedAtOnce)},
		{"all are gone", 10, 3, func(int) bool { return true }, 0, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			read := 0
			var shown []*records.Thread
			recordsOf := func(page []int) (list []*records.Thread, err error) {
				require.LessOrEqual(t, len(page), listedAtOnce)
				for _, i := range page {
					if c.gone == nil || !c.gone(i) {
						list = append(list, &records.Thread{ID: strconv.Itoa(i)})
					}
				}
				return list, nil
			}
			err := list(counted(c.total, &read), c.limit, strconv.Itoa, recordsOf, func(r *records.Thread) error {
				require.LessOrEqual(t, read-len(shown), 2*listedAtOnce+1, "what was read is shown before more is read")
				shown = append(shown, r)
				return nil
			})
			require.NoError(t, err)
			require.Len(t, shown, c.shown)
			if c.limit > 0 {
				require.LessOrEqual(t, read, c.limit+1)
			}
			for i, r := range shown {
				if i < len(shown)-1 {
					require.Empty(t, r.Next)
				} else {
					require.Equal(t, strconv.Itoa(c.last), r.ID)
					require.Equal(t, c.next, r.Next)
				}
			}
		})
	}
}

func counted(total int, read *int) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range total {
			*read++
			if !yield(i, nil) {
				return
			}
		}
	}
}

// The first error ends a list.
func TestListEndsWithTheFirstError(t *testing.T) {
	failed := errors.New("failed")
	made := func(page []int) (list []*records.Thread, err error) {
		for range page {
			list = append(list, &records.Thread{})
		}
		return list, nil
	}
	read := 0
	broken := func(yield func(int, error) bool) {
		counted(5, &read)(yield)
		yield(0, failed)
	}
	shown := 0
	show := func(*records.Thread) error { shown++; return nil }
	require.ErrorIs(t, list(broken, 0, strconv.Itoa, made, show), failed)
	require.ErrorIs(t, list(counted(5, &read), 0, strconv.Itoa, func([]int) ([]*records.Thread, error) { return nil, failed }, show), failed)
	require.Zero(t, shown)

	read = 0
	require.ErrorIs(t, list(counted(5*listedAtOnce, &read), 0, strconv.Itoa, made, func(*records.Thread) error { return failed }), failed)
	require.LessOrEqual(t, read, listedAtOnce+1)
}
