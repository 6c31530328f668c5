// Package pages divides sequences.
package pages

import "iter"

// Of yields the elements of a sequence in slices of size; the last one has what is left. It does not keep the slices. After an
// error it yields nothing, so elements before it that fill no slice are left out.
func Of[T any](all iter.Seq2[T, error], size int) iter.Seq2[[]T, error] {
	return func(yield func([]T, error) bool) {
		var page []T
		for element, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			if page = append(page, element); len(page) == size {
				if !yield(page, nil) {
					return
				}
				page = nil
			}
		}
		if len(page) > 0 {
			yield(page, nil)
		}
	}
}
