package follow

import (
	"cmp"
	"path/filepath"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage/archive"
)

// choosePlaces sets the places to follow.
func (r *run) choosePlaces() error {
	for _, agent := range Agents() {
		if !r.options.follows(agent.Name) {
			continue
		}
		for _, p := range agent.places(r.options.Environment) {
			r.addPlace(r.folderOf(agent, p))
		}
	}
	for _, dir := range r.options.From {
		full, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		r.addPlace(&folder{place: placeOf(full, "**/*.jsonl", "**/*.jsonl.zst", "**/*.json", "**/*.db", "**/*.sqlite")})
	}
	return nil
}

// folderOf returns the folder to follow for a place of an agent.
func (r *run) folderOf(agent Agent, p place) *folder {
	p.format = cmp.Or(p.format, agent.Format)
	known := slices.ContainsFunc(r.options.Formats, func(f archive.Format) bool { return f.Name == p.format })
	return &folder{place: p, agent: agent, unread: !known}
}

func (r *run) addPlace(p *folder) {
	if p.agent.keeps != nil {
		p.keeps = p.agent.keeps(r.options.Environment)
	}
	r.places = append(r.places, p)
}

// placeOf returns the place that contains a path, or nil.
func (r *run) placeOf(path string) *folder {
	for _, p := range r.places {
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

// fileAt returns the file with a name in a place, or nil if it belongs to another place.
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
