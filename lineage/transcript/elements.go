package transcript

import (
	"regexp"
	"strings"
)

// Limits of a text that is read as elements.
const (
	maxElements     = 4096 // bytes
	maxElementDepth = 8
)

// fields returns a text that has only elements, such as the environment_context of Codex, as their names and values in one
// line: "cwd: /src, shell: bash". It returns any other text unchanged.
func fields(text string) string {
	if len(text) > maxElements {
		return text
	}
	parts, ok := elements(text, 0)
	if !ok {
		return text
	}
	return strings.Join(parts, ", ")
}

// elements returns the names and values of the innermost elements of a text. ok is false if there is anything else in it, or
// a value has several lines.
func elements(text string, depth int) (parts []string, ok bool) {
	if depth == maxElementDepth {
		return nil, false
	}
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		opening, after, found := strings.Cut(rest, ">")
		opening, begins := strings.CutPrefix(opening, "<")
		name, _, _ := strings.Cut(opening, " ")
		inside, after, ended := strings.Cut(after, "</"+name+">")
		if !begins || !found || !ended || name == "" || strings.ContainsAny(name, "/<\n") || strings.Contains(inside, "<"+name) {
			return nil, false
		}
		rest = after
		value := strings.TrimSpace(inside)
		if !strings.ContainsAny(value, "<>\n") {
			parts = append(parts, opening+": "+value)
			continue
		}
		within, ok := elements(value, depth+1)
		if !ok {
			return nil, false
		}
		if opening != name {
			parts = append(parts, opening)
		}
		parts = append(parts, within...)
	}
	return parts, len(parts) > 0
}

// tag matches a tag without attributes.
var tag = regexp.MustCompile(`</?[A-Za-z][A-Za-z0-9_-]*>`)

// untagged returns a text without the tags of elements that are closed in it.
func untagged(text string) string {
	closed := make(map[string]bool)
	for _, t := range tag.FindAllString(text, -1) {
		if name, ok := strings.CutPrefix(t, "</"); ok {
			closed["<"+name], closed[t] = true, true
		}
	}
	if len(closed) == 0 {
		return text
	}
	return tag.ReplaceAllStringFunc(text, func(t string) string {
		if closed[t] {
			return ""
		}
		return t
	})
}
