package follow

import (
	"path/filepath"
	"slices"
	"strings"
)

// sessionFolder is a folder in which an agent keeps its sessions.
type sessionFolder struct {
	root     string
	patterns []pattern
	// except are files that match one of patterns and have no session.
	except []pattern
	// format is the archive format of the files, if it differs from the agent's.
	format string
	// formats are those of the files of some patterns, by their index.
	formats map[int]string
	// project is the working directory of the sessions, for an agent whose sessions do not state it.
	project string
	// fuller is the name of files with more of a session than the file named cut beside them, which is then not followed.
	cut, fuller string
	// index is set for files without sessions that list other folders of the agent.
	index bool
}

// sessionsIn returns a folder whose sessions are the files that match one of the patterns.
func sessionsIn(root string, patterns ...string) sessionFolder {
	p := sessionFolder{root: root}
	for _, text := range patterns {
		p.patterns = append(p.patterns, strings.Split(text, "/"))
	}
	return p
}

// in returns the folder with another format.
func (p sessionFolder) in(format string) sessionFolder {
	p.format = format
	return p
}

// also returns the folder with the files of another format that match a pattern.
func (p sessionFolder) also(format, text string) sessionFolder {
	p.formats = map[int]string{len(p.patterns): format}
	p.patterns = append(p.patterns, strings.Split(text, "/"))
	return p
}

// without returns the folder without files that match one of these patterns.
func (p sessionFolder) without(patterns ...string) sessionFolder {
	p.except = sessionsIn("", patterns...).patterns
	return p
}

// unless returns the folder without files of one name that are beside one of another name.
func (p sessionFolder) unless(cut, fuller string) sessionFolder {
	p.cut, p.fuller = cut, fuller
	return p
}

// hasFuller reports whether a file is left out because there is another one with more of the same session.
func (p *sessionFolder) hasFuller(path string) bool {
	return p.cut != "" && filepath.Base(path) == p.cut && exists(filepath.Join(filepath.Dir(path), p.fuller))
}

// file returns the index of the first pattern that matches a file, or -1.
func (p *sessionFolder) file(name string) int {
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
func (p *sessionFolder) folder(name string) bool {
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
