package refs

import (
	"cmp"
	"slices"
	"strings"
)

// maxNear is how many suggestions are worth reading.
const maxNear = 4

// Nearest returns the names that someone who wrote text may have meant, most likely first.
func Nearest(text string, names []string) []string {
	type guess struct {
		name string
		far  int
	}
	var guesses []guess
	seen := make(map[string]bool)
	lower := strings.ToLower(text)
	for _, name := range names {
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		against := strings.ToLower(name)
		var far int
		switch {
		case lower != "" && (strings.HasPrefix(against, lower) || strings.HasPrefix(lower, against)):
		case len(lower) > 2 && strings.Contains(against, lower):
			far = 1
		case len(against) > 200 || len(lower) > 200:
			continue
		default:
			far = distance(lower, against)
		}
		if far <= max(len(lower)/3, 1) {
			guesses = append(guesses, guess{name, far})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name))
	})
	var near []string
	for _, g := range guesses[:min(len(guesses), maxNear)] {
		near = append(near, g.name)
	}
	return near
}

// distance returns the number of insertions, deletions, replacements and swaps of neighbouring letters that turn a
// into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}

// Unknown returns the error for an unknown name, with similar ones among names.
func Unknown(kind, text string, names []string) error {
	return &UnknownError{Kind: kind, Text: text, Near: Nearest(text, names)}
}
