package query

import "strings"

// maxStemmed is the maximum size of a word that is stemmed.
const maxStemmed = 64

// stem returns the stem of a lower-case word by Porter's algorithm, like SQLite's
// tokenizer porter.
func stem(word string) string {
	if len(word) < 3 || len(word) > maxStemmed {
		return word
	}
	return step5(step4(step3(step2(step1c(step1b(step1a(word)))))))
}

// A rule replaces a suffix.
type rule struct{ suffix, with string }

var (
	rules2 = []rule{
		{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"}, {"izer", "ize"}, {"logi", "log"}, {"bli", "ble"},
		{"alli", "al"}, {"entli", "ent"}, {"eli", "e"}, {"ousli", "ous"}, {"ization", "ize"}, {"ation", "ate"}, {"ator", "ate"},
		{"alism", "al"}, {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"},
	}
	rules3 = []rule{
		{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""},
	}
	suffixes4 = []string{
		"al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti", "ous",
		"ive", "ize",
	}
)

func step1a(w string) string {
	switch {
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "ies"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

func step1b(w string) string {
	if rest, ok := strings.CutSuffix(w, "eed"); ok {
		if measure(rest) > 0 {
			return w[:len(w)-1]
		}
		return w
	}
	rest, ok := strings.CutSuffix(w, "ed")
	if !ok {
		rest, ok = strings.CutSuffix(w, "ing")
	}
	if !ok || !hasVowel(rest) {
		return w
	}
	switch {
	case strings.HasSuffix(rest, "at"), strings.HasSuffix(rest, "bl"), strings.HasSuffix(rest, "iz"):
		return rest + "e"
	case endsDouble(rest) && !strings.HasSuffix(rest, "l") && !strings.HasSuffix(rest, "s") && !strings.HasSuffix(rest, "z"):
		return rest[:len(rest)-1]
	case measure(rest) == 1 && endsShort(rest):
		return rest + "e"
	}
	return rest
}

func step1c(w string) string {
	if rest, ok := strings.CutSuffix(w, "y"); ok && hasVowel(rest) {
		return rest + "i"
	}
	return w
}

func step2(w string) string { return replaced(w, rules2) }

func step3(w string) string { return replaced(w, rules3) }

// replaced applies the first rule whose suffix the word has, if the rest is long
// enough.
func replaced(w string, rules []rule) string {
	for _, r := range rules {
		if rest, ok := strings.CutSuffix(w, r.suffix); ok {
			if measure(rest) > 0 {
				return rest + r.with
			}
			return w
		}
	}
	return w
}

func step4(w string) string {
	for _, suffix := range suffixes4 {
		rest, ok := strings.CutSuffix(w, suffix)
		if !ok {
			continue
		}
		if measure(rest) > 1 && (suffix != "ion" || strings.HasSuffix(rest, "s") || strings.HasSuffix(rest, "t")) {
			return rest
		}
		return w
	}
	return w
}

func step5(w string) string {
	if rest, ok := strings.CutSuffix(w, "e"); ok {
		if m := measure(rest); m > 1 || m == 1 && !endsShort(rest) {
			w = rest
		}
	}
	if strings.HasSuffix(w, "ll") && measure(w) > 1 {
		w = w[:len(w)-1]
	}
	return w
}

// isConsonant reports whether a letter is a consonant. A y is one at the start of
// the word and after a vowel.
func isConsonant(w string, at int) bool {
	switch w[at] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return at == 0 || !isConsonant(w, at-1)
	}
	return true
}

func hasVowel(w string) bool {
	for i := range len(w) {
		if !isConsonant(w, i) {
			return true
		}
	}
	return false
}

// measure counts the vowel-consonant sequences.
func measure(w string) int {
	m, afterVowel := 0, false
	for i := range len(w) {
		consonant := isConsonant(w, i)
		if consonant && afterVowel {
			m++
		}
		afterVowel = !consonant
	}
	return m
}

func endsDouble(w string) bool {
	n := len(w)
	return n > 1 && w[n-1] == w[n-2] && isConsonant(w, n-1)
}

// endsShort reports whether a word ends with consonant, vowel, consonant, and the
// last is not w, x or y.
func endsShort(w string) bool {
	n := len(w)
	if n < 3 || !isConsonant(w, n-1) || isConsonant(w, n-2) || !isConsonant(w, n-3) {
		return false
	}
	return w[n-1] != 'w' && w[n-1] != 'x' && w[n-1] != 'y'
}
