package follow

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
)

// List returns the folders of all agents, in the order of Agents, and then those of Choice.From. It reads no sessions
// and changes nothing.
func List(ctx context.Context, store *lineage.Store, o Options) ([]Listing, error) {
	o.Events = nil
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r, err := newRun(ctx, store, o)
	if err != nil {
		return nil, err
	}
	r.addNotChosen()
	r.scanAll(ctx)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var all []Listing
	listings := make(map[*folder]int)
	for _, p := range r.folders {
		if !p.index || !slices.ContainsFunc(r.folders, func(other *folder) bool { return other != p && other.agent.Name == p.agent.Name }) {
			l := r.listing(p)
			i := slices.IndexFunc(all, func(o Listing) bool { return o.Agent.Name == l.Agent.Name && o.Path == l.Path && o.State == l.State })
			if i < 0 { // else the agent has files of two formats in the folder
				i, all = len(all), append(all, l)
			}
			listings[p] = i
		}
	}
	queued := make(map[*file]bool)
	for _, f := range r.queue {
		queued[f] = true
	}
	for _, f := range r.files {
		if f.folder != nil && f.folder.index {
			continue
		}
		if i, ok := listings[f.folder]; ok && f.state.Gone.IsZero() {
			r.addTo(&all[i], f, queued[f])
		} else if i, ok := listings[r.folderWith(f.path)]; ok && !f.state.Gone.IsZero() {
			all[i].Gone++
		}
	}
	for i := range all {
		slices.SortFunc(all[i].Problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	}
	return withoutAbsent(all), nil
}

// withoutAbsent removes missing folders of agents that have several. If all are missing, the first one stays.
func withoutAbsent(all []Listing) (listed []Listing) {
	absent := func(l *Listing) bool { return l.Agent.Name != "" && l.State == NotThere && l.Gone == 0 }
	known := make(map[string]bool)
	for i := range all {
		if !absent(&all[i]) {
			known[all[i].Agent.Name] = true
		}
	}
	for i := range all {
		if l := &all[i]; absent(l) {
			if known[l.Agent.Name] {
				continue
			}
			known[l.Agent.Name] = true
		}
		listed = append(listed, all[i])
	}
	return listed
}

// addNotChosen adds the folders of agents that are not chosen.
func (r *run) addNotChosen() {
	chosen := r.folders
	r.folders = nil
	for _, agent := range Agents() {
		if r.options.follows(agent.Name) {
			for _, p := range chosen {
				if p.agent.Name == agent.Name {
					r.addFolder(p)
				}
			}
			continue
		}
		for _, p := range agent.folders(r.options.Environment) {
			r.addFolder(&folder{sessionFolder: p, agent: agent, unread: true, notChosen: true})
		}
	}
	for _, p := range chosen {
		if p.agent.Name == "" {
			r.addFolder(p)
		}
	}
}

// listing returns a folder without its files.
func (r *run) listing(p *folder) Listing {
	l := Listing{Agent: p.agent, Path: p.root, State: Followed, Keeps: p.keeps}
	for _, format := range r.options.Formats {
		if format.Name == p.format && !p.agent.Shares {
			l.Tried = format.Tried
		}
	}
	switch {
	case p.notChosen:
		l.State = NotChosen
	case !p.there && len(p.errors) == 0:
		l.State = NotThere
	case p.unread:
		l.State = NotReadYet
	}
	for _, dir := range slices.Sorted(maps.Keys(p.errors)) {
		l.Problems = append(l.Problems, Problem{Path: dir, Error: p.errors[dir].Error()})
	}
	return l
}

// addTo adds a file to the listing of its folder.
func (r *run) addTo(l *Listing, f *file, queued bool) {
	l.Files++
	l.Bytes += f.now.size
	if queued && !(f.byLines() && f.now.size == 0) { // an empty file has nothing to read
		l.Unread++
	}
	if f.state.LeftOut != "" {
		l.LeftOut++
	}
	if r.deletedSoon(f) {
		l.Soon++
	}
	problem := Problem{Path: f.path, Error: f.state.Error, Skipped: f.state.Skipped}
	switch {
	case f.now.mode&fs.ModeSymlink != 0:
		problem.Error = errLink.Error()
	case !f.now.mode.IsRegular():
		problem.Error = errNotRegular.Error()
	}
	if problem.Error != "" {
		l.Problems = append(l.Problems, problem)
	}
}

// OnlyKept returns the source ids of the sessions of a machine that only the store has, because their files were gone
// when a follower last looked, with the time of that.
func OnlyKept(ctx context.Context, store *lineage.Store, m Machine) (map[string]time.Time, error) {
	states, err := keptFor(store, m).states(ctx)
	if err != nil {
		return nil, err
	}
	gone := make(map[string]time.Time)
	for _, s := range states {
		for _, id := range s.Conversations {
			if !s.Gone.IsZero() && s.Gone.After(gone[id]) {
				gone[id] = s.Gone
			}
		}
	}
	for _, s := range states {
		for _, id := range s.Conversations {
			if s.Gone.IsZero() { // another file has the session
				delete(gone, id)
			}
		}
	}
	return gone, nil
}
