package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// Suffix is the suffix of packs, and Unfinished that of packs being written.
const (
	Suffix     = ".pack"
	Unfinished = ".tmp"
)

// Name returns the file name of a pack of segments. A rewritten pack has the next
// generation, which replaces the earlier one.
func Name(first, last uint32, generation int) string {
	if generation == 0 {
		return fmt.Sprintf("%010d-%010d%s", first, last, Suffix)
	}
	return fmt.Sprintf("%010d-%010d.%d%s", first, last, generation, Suffix)
}

// ParseName is the inverse of Name. It returns false for other names.
func ParseName(name string) (first, last uint32, generation int, ok bool) {
	base, ok := strings.CutSuffix(name, Suffix)
	a, b, found := strings.Cut(base, "-")
	if !ok || !found {
		return 0, 0, 0, false
	}
	b, g, again := strings.Cut(b, ".")
	x, err1 := strconv.ParseUint(a, 10, 32)
	y, err2 := strconv.ParseUint(b, 10, 32)
	var err3 error
	if again {
		generation, err3 = strconv.Atoi(g)
	}
	first, last = uint32(x), uint32(y)
	ok = err1 == nil && err2 == nil && err3 == nil && generation >= 0 && first > 0 && first <= last && Name(first, last, generation) == name
	return first, last, generation, ok
}
