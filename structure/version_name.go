package structure

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MostVersionsCounted is the largest number of names that are counted for a new one.
const MostVersionsCounted = 100

// maxVersionName limits the bytes of a name from VersionName. Names are derived from such
// names repeatedly, and would grow without limit.
const maxVersionName = 200

// VersionStem returns the stem of the names derived from a name, before "-v" and a
// number: the name itself unless it is too long.
func VersionStem(name string) string {
	const longestVersion = len("-v18446744073709551615")
	if len(name) <= maxVersionName-longestVersion {
		return name
	}
	cut := maxVersionName - longestVersion
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	name = name[:cut]
	if i := strings.LastIndex(name, "-v"); i > 0 {
		name = name[:i]
	}
	return name
}

// VersionName returns the name of a new version of something: the stem of its current name, "-v" and a
// number. The number is one more than the number of versions there are: names that are the stem, or that begin with
// the stem and "-v". At most MostVersionsCounted of them are counted. If the name is taken, FreeNumber chooses a
// higher number.
//
// names returns at most limit names that begin with a prefix. free returns the index of the first free name in a
// list, or the length of the list if all are taken.
func VersionName(current string, names func(prefix string, limit int) ([]string, error), free func(names []string) (int, error)) (string, error) {
	stem := VersionStem(current)
	versions, err := names(stem+"-v", MostVersionsCounted)
	if err != nil {
		return "", err
	}
	count := len(versions)
	if at, err := free([]string{stem}); err != nil {
		return "", err
	} else if at > 0 {
		count++
	}
	name := func(n uint64) string { return fmt.Sprintf("%s-v%d", stem, n) }
	n, err := FreeNumber(uint64(min(count, MostVersionsCounted))+1, func(numbers []uint64) (int, error) {
		part := make([]string, len(numbers))
		for i, n := range numbers {
			part[i] = name(n)
		}
		return free(part)
	})
	return name(n), err
}

// FreeNumber returns a free number: first, or a higher one that follows a number that is taken.
// free returns the index of the first free number in a list, or the length of the list if all are taken. It is
// called a few times, however many numbers are taken.
func FreeNumber(first uint64, free func(numbers []uint64) (int, error)) (uint64, error) {
	used, above, err := bracket(first, free)
	for err == nil && above-used > 1 {
		used, above, err = narrow(used, above, free)
	}
	return above, err
}

// bracket returns a number that is taken, or the one before first, and a higher one that is free. Distances between the numbers that
// it tries double.
func bracket(first uint64, free func(numbers []uint64) (int, error)) (used, above uint64, err error) {
	const doublings = 24
	used = first - 1
	numbers := make([]uint64, 0, doublings)
	most := 1 // the first one is free unless there are many
	for step := uint64(1); above == 0; most = doublings {
		numbers = numbers[:0]
		for at := used; len(numbers) < most; step *= 2 {
			at += step
			numbers = append(numbers, at)
		}
		if used, above, err = between(used, above, numbers, free); err != nil {
			return 0, 0, err
		}
	}
	return used, above, nil
}

// narrow tries numbers at equal distances between a number that is taken and one that is free, and returns the nearest two.
func narrow(used, above uint64, free func(numbers []uint64) (int, error)) (uint64, uint64, error) {
	const parts = 16
	numbers := make([]uint64, 0, parts)
	for i := uint64(1); i < parts; i++ {
		if n := used + max(1, (above-used)/parts)*i; n < above {
			numbers = append(numbers, n)
		}
	}
	return between(used, above, numbers, free)
}

// between returns the last number that is taken and the first that is free, of used, some increasing numbers, and above.
func between(used, above uint64, numbers []uint64, free func(numbers []uint64) (int, error)) (uint64, uint64, error) {
	at, err := free(numbers)
	if err != nil {
		return 0, 0, err
	}
	if at > 0 {
		used = numbers[at-1]
	}
	if at < len(numbers) {
		above = numbers[at]
	}
	return used, above, nil
}
