package engine

import (
	"strings"
	"unicode"
)

// irregular are plurals that the rules below do not cover, and words without a distinct plural.
var irregular = map[string]string{
	"people": "person", "children": "child", "men": "man", "women": "woman", "feet": "foot", "teeth": "tooth", "geese": "goose", "mice": "mouse", "lice": "louse",
	"oxen": "ox", "data": "datum", "media": "media", "criteria": "criterion", "phenomena": "phenomenon", "indices": "index", "vertices": "vertex",
	"matrices": "matrix", "quizzes": "quiz", "movies": "movie", "cookies": "cookie", "ties": "tie", "lies": "lie", "pies": "pie", "dies": "die", "shoes": "shoe",
	"caches": "cache", "axes": "axis", "analyses": "analysis", "theses": "thesis", "hypotheses": "hypothesis", "crises": "crisis", "diagnoses": "diagnosis",
	"knives": "knife", "lives": "life", "wives": "wife", "leaves": "leaf", "halves": "half", "shelves": "shelf", "wolves": "wolf", "loaves": "loaf", "thieves": "thief",
	"heroes": "hero", "potatoes": "potato", "tomatoes": "tomato", "echoes": "echo",
	"news": "news", "series": "series", "species": "species", "sheep": "sheep", "fish": "fish", "status": "status", "bus": "bus", "gas": "gas", "bias": "bias",
	"canvas": "canvas", "alias": "alias", "virus": "virus", "corpus": "corpus", "campus": "campus", "bonus": "bonus", "focus": "focus", "atlas": "atlas", "lens": "lens",
	"statuses": "status", "buses": "bus", "viruses": "virus", "bonuses": "bonus", "campuses": "campus", "corpuses": "corpus", "focuses": "focus", "aliases": "alias",
	"biases": "bias", "gases": "gas", "canvases": "canvas", "atlases": "atlas", "lenses": "lens",
	"yes": "yes", "this": "this", "is": "is", "analysis": "analysis", "basis": "basis", "axis": "axis", "thesis": "thesis", "crisis": "crisis", "diagnosis": "diagnosis",
}

// singular returns a name in the singular, by rules of English. Only the last word changes:
// user_hints becomes user_hint.
func singular(name string) string {
	start := strings.LastIndexFunc(name, func(r rune) bool { return !unicode.IsLetter(r) }) + 1
	for i := len(name) - 1; i > start; i-- { // userHints
		if unicode.IsUpper(rune(name[i])) && unicode.IsLower(rune(name[i-1])) {
			start = i
			break
		}
	}
	word := name[start:]
	lower := strings.ToLower(word)
	if singular, ok := irregular[lower]; ok {
		same := 0 // keep the case of these
		for same < min(len(singular), len(word)) && singular[same] == lower[same] {
			same++
		}
		return name[:start] + word[:same] + singular[same:]
	}
	for _, rule := range [][2]string{
		{"ies", "y"}, {"sses", "ss"}, {"shes", "sh"}, {"ches", "ch"}, {"xes", "x"}, {"zzes", "zz"},
		{"ss", "ss"}, {"s", ""},
	} {
		if suffix := rule[0]; strings.HasSuffix(lower, suffix) && len(lower) > len(suffix) {
			return name[:start] + word[:len(word)-len(suffix)] + rule[1]
		}
	}
	return name
}

// titleCase returns the words of a name, capitalised.
func titleCase(name string) string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		switch {
		case r == '_' || r == '-' || unicode.IsSpace(r):
			r = ' '
			if last == ' ' || last == 0 {
				continue
			}
		case last == 0 || last == ' ':
			r = unicode.ToTitle(r)
		case unicode.IsUpper(r) && (unicode.IsLower(last) || unicode.IsDigit(last)):
			b.WriteByte(' ')
		}
		b.WriteRune(r)
		last = r
	}
	title := strings.TrimSuffix(b.String(), " ")
	if title == "" {
		return name
	}
	return title
}
