package refs

import (
	"strconv"
	"strings"
)

// A step leads from one position of a history to another.
type step struct {
	kind stepKind
	n    uint64
	text string // as it was written
}

type stepKind int

const (
	back     stepKind = iota // ~n and @{n}: n messages back
	position                 // :n: the n-th message
	moved                    // @{-n}: where it pointed before the last n moves
)

// cutStep splits the last step off a name. It reports false if there is none.
func cutStep(text string) (name string, s step, found bool) {
	if name, inner, ok := cutLast(text, "@{"); ok && strings.HasSuffix(inner, "}") {
		digits := strings.TrimSuffix(inner, "}")
		kind := back
		if strings.HasPrefix(digits, "-") {
			digits, kind = digits[1:], moved
		}
		if n, ok := number(digits); ok {
			return name, step{kind, n, text[len(name):]}, true
		}
		return "", step{}, false
	}
	if name, digits, ok := cutLast(text, "~"); ok {
		n, ok := number(digits)
		if digits == "" {
			n, ok = 1, true
		}
		if ok {
			return name, step{back, n, text[len(name):]}, true
		}
		return "", step{}, false
	}
	if name, digits, ok := cutLast(text, ":"); ok {
		if n, ok := number(digits); ok && n > 0 {
			return name, step{position, n, text[len(name):]}, true
		}
	}
	return "", step{}, false
}

// Step returns the step at the end of a name. "@" alone is a step to the active branch. It reports false if the whole
// name can only be a name.
func Step(name string) (step string, found bool) {
	if name == "@" {
		return name, true
	}
	_, s, found := cutStep(name)
	return s.text, found
}

func cutLast(text, mark string) (before, after string, found bool) {
	i := strings.LastIndex(text, mark)
	if i < 0 {
		return "", "", false
	}
	return text[:i], text[i+len(mark):], true
}

func number(digits string) (uint64, bool) {
	if digits == "" || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	return n, err == nil
}
