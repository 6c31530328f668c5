package follow

import (
	"path"
	"slices"
	"strings"
)

// pattern matches paths relative to a folder, with slashes. Each element is as in path.Match; an
// element ** stands for any number of folders.
type pattern []string

func placeOf(root string, patterns ...string) place {
	p := place{root: root}
	for _, text := range patterns {
		p.patterns = append(p.patterns, strings.Split(text, "/"))
	}
	return p
}

// without returns the place without files that match one of these patterns.
func (p place) without(patterns ...string) place {
	p.except = placeOf("", patterns...).patterns
	return p
}

// literal returns the pattern that matches one name.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(name)
}

// file reports whether the pattern matches a file.
func (p pattern) file(name []string) bool { return p.match(name, false) }

// folder reports whether a folder may contain matching files, at any depth.
func (p pattern) folder(name []string) bool { return p.match(name, true) }

func (p pattern) match(name []string, begins bool) bool {
	switch {
	case len(name) == 0:
		return begins == (len(p) > 0)
	case len(p) == 0:
		return false
	case p[0] == "**":
		return p[1:].match(name, begins) || p.match(name[1:], begins)
	}
	ok, _ := path.Match(p[0], name[0]) // the patterns are those of this package
	return ok && p[1:].match(name[1:], begins)
}

// file returns the index of the first pattern that matches a file, or -1.
func (p *place) file(name string) int {
	parts := strings.Split(name, "/")
	excepted := slices.ContainsFunc(p.except, func(pattern pattern) bool { return pattern.file(parts) })
	for i, pattern := range p.patterns {
		if !excepted && pattern.file(parts) {
			return i
		}
	}
	return -1
}

// folder reports whether a folder may contain matching files, at any depth.
func (p *place) folder(name string) bool {
	if name == "." {
		return true
	}
	parts := strings.Split(name, "/")
	for _, pattern := range p.patterns {
		if pattern.folder(parts) {
			return true
		}
	}
	return false
}
