package structure

import (
	"fmt"
	"slices"
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

// VersionName returns the name of a new version of what has the current name: the stem of
// that, "-v" and one more than the names that are the stem or begin with it and "-v", of which
// MostVersionsCounted are counted at most. If that name is taken, its number is a higher one that
// is free while the one before it is not. It asks for a few names, however many are taken.
//
// names returns names that begin with a prefix, no more of them than a limit: the prefix
// itself first, if it is one.
func VersionName(current string, names func(prefix string, limit int) ([]string, error)) (string, error) {
	stem := VersionStem(current)
	taken := func(name string) (bool, error) {
		found, err := names(name, 1)
		return slices.Contains(found, name), err
	}
	versions, err := names(stem+"-v", MostVersionsCounted)
	if err != nil {
		return "", err
	}
	count := len(versions)
	if is, err := taken(stem); err != nil {
		return "", err
	} else if is {
		count++
	}
	name := func(n uint64) string { return fmt.Sprintf("%s-v%d", stem, n) }
	first := uint64(min(count, MostVersionsCounted)) + 1
	n, err := FreeNumber(first, func(n uint64) (bool, error) { return taken(name(n)) })
	return name(n), err
}

// FreeNumber returns a number that is not taken: the first, or a higher one after one
// that is taken. taken is called a few times, however many numbers are taken.
func FreeNumber(first uint64, taken func(uint64) (bool, error)) (uint64, error) {
	used, free := first-1, first // the one before the first counts as taken
	for step := uint64(1); ; step *= 2 {
		is, err := taken(free)
		if err != nil {
			return 0, err
		}
		if !is {
			break
		}
		used, free = free, free+step
	}
	for free-used > 1 {
		middle := used + (free-used)/2
		is, err := taken(middle)
		if err != nil {
			return 0, err
		}
		if is {
			used = middle
		} else {
			free = middle
		}
	}
	return free, nil
}
