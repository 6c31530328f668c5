package sealed

// In a column, parts of equal size that follow each other are interleaved if they are many and small:
// first the first bytes of all, then the second ones, and so on. Numbers and times in them have equal
// bytes at equal places.
const (
	minInterleaved = 16
	maxInterleaved = 128 // size of a part
)

// interleave writes parts of the given sizes to a column of the same length.
func interleave(to, parts []byte, sizes []int) {
	eachRun(sizes, func(at, size, n int) {
		for i := range n {
			for j := range size {
				to[at+j*n+i] = parts[at+i*size+j]
			}
		}
	}, func(at, end int) { copy(to[at:end], parts[at:end]) })
}

// separate is the inverse of interleave.
func separate(to, column []byte, sizes []int) {
	eachRun(sizes, func(at, size, n int) {
		for i := range n {
			for j := range size {
				to[at+i*size+j] = column[at+j*n+i]
			}
		}
	}, func(at, end int) { copy(to[at:end], column[at:end]) })
}

// eachRun calls interleaved for n parts of a size from a place on, and plain for all others.
func eachRun(sizes []int, interleaved func(at, size, n int), plain func(at, end int)) {
	at := 0
	for len(sizes) > 0 {
		size, n := sizes[0], 1
		for n < len(sizes) && sizes[n] == size {
			n++
		}
		if n >= minInterleaved && size > 1 && size <= maxInterleaved {
			interleaved(at, size, n)
		} else {
			plain(at, at+n*size)
		}
		at, sizes = at+n*size, sizes[n:]
	}
}
