package follow

import (
	"path/filepath"
	"time"
)

// folder is a followed folder.
type folder struct {
	sessionFolder
	agent Agent // without a name for a folder of Choice.From
	// unread is set if its files are not read: because there is no reader for the agent's format or, with notChosen,
	// because the agent is not chosen.
	unread, notChosen bool
	// there is set while the folder exists. errors are those of the folder and the folders below it.
	there  bool
	errors map[string]error
	real   string // root with links resolved, while it exists
	keeps  time.Duration
}

// name returns the path relative to the folder, with slashes.
func (p *folder) name(path string) (string, bool) {
	if !p.there || !within(path, p.real) || path == p.real {
		return "", false
	}
	rel, err := filepath.Rel(p.real, path)
	return filepath.ToSlash(rel), err == nil
}
