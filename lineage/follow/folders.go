package follow

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
)

// chooseFolders sets the folders to follow.
func (r *run) chooseFolders() error {
	for _, agent := range Agents() {
		if !r.options.follows(agent.Name) {
			continue
		}
		for _, p := range agent.folders(r.options.Environment) {
			r.addFolder(r.newFolder(agent, p))
		}
	}
	for _, dir := range r.options.From {
		full, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		r.addFolder(&folder{sessionFolder: sessionsIn(full, "**/*.jsonl", "**/*.jsonl.zst", "**/*.json", "**/*.db", "**/*.sqlite")})
	}
	return nil
}

// newFolder returns a folder of an agent as one to follow.
func (r *run) newFolder(agent Agent, p sessionFolder) *folder {
	p.format = cmp.Or(p.format, agent.Format)
	known := slices.ContainsFunc(r.options.Formats, func(f archive.Format) bool { return f.Name == p.format })
	return &folder{sessionFolder: p, agent: agent, unread: !known}
}

func (r *run) addFolder(p *folder) {
	if p.agent.keeps != nil {
		p.keeps = p.agent.keeps(r.options.Environment)
	}
	r.folders = append(r.folders, p)
}

// folderWith returns the followed folder that contains a path, or nil.
func (r *run) folderWith(path string) *folder {
	for _, p := range r.folders {
		root := p.real
		if root == "" {
			root = p.root
		}
		if within(path, root) {
			return p
		}
	}
	return nil
}

// fileAt returns the file with a name in a followed folder, or nil if it belongs to another one.
func (r *run) fileAt(p *folder, name string) *file {
	path := filepath.Join(p.real, filepath.FromSlash(name))
	key := RecordedPath(path)
	f := r.files[key]
	if f == nil {
		f = &file{path: path}
		r.files[key] = f
	}
	if f.folder != nil && f.folder != p {
		return nil
	}
	if f.folder == nil || f.path != path && !exists(f.path) {
		f.folder, f.pattern = p, p.file(name)
		f.move(path)
	}
	if f.path != path {
		return nil // the compressed copy of an existing file
	}
	return f
}

// deletedSoon reports whether the agent will delete a file soon.
func (r *run) deletedSoon(f *file) bool {
	keeps := f.folder.keeps
	return keeps > 0 && r.clock.Now().Add(SoonTime).Sub(time.Unix(0, f.now.modified)) > keeps
}
