package follow

import (
	"path"
	"strings"
)

// pattern matches paths relative to a folder, with slashes. Each element is as in path.Match; an
// element ** stands for any number of folders.
type pattern []string

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
