package backendtest

import (
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Listings that start after an existing, a deleted or a missing thing.

// some returns at most three members of a list, to bound the number of continued listings.
func some[T any](all []T) []T {
	if len(all) <= 3 {
		return all
	}
	return []T{all[0], all[len(all)/2], all[len(all)-1]}
}

// several returns at most eight members of a list, for lists that are combined with another list.
func several[T any](all []T) []T {
	const most = 8
	if len(all) <= most {
		return all
	}
	var out []T
	for i := range most {
		out = append(out, all[i*(len(all)-1)/(most-1)])
	}
	return out
}

func (f Facts) pages(t tester, r backend.Reader, seen *Census) {
	t.Helper()
	for _, after := range some(seen.threads.list()) {
		f.put(t, fmt.Sprint("threads after ", after), values(t, r.Threads(background, after)))
	}
	for _, after := range some(seen.contexts.list()) {
		f.put(t, fmt.Sprint("contexts alone after ", after), list(t, r.ContextsAlone(background, after)))
		f.put(t, fmt.Sprint("contexts after ", after), list(t, r.Contexts(background, structure.ThreadID{}, after)))
		for _, thread := range some(seen.threads.list()) {
			f.put(t, fmt.Sprintf("contexts of %v after %v", thread, after), list(t, r.Contexts(background, thread, after)))
		}
		for _, parent := range some(seen.contexts.list()) {
			f.put(t, fmt.Sprintf("children of %v after %v", parent, after), list(t, r.Children(background, parent, after)))
		}
	}
	for _, thread := range some(seen.threads.list()) {
		for _, after := range some(seen.names.list()) {
			f.put(t, fmt.Sprintf("checkpoints of %v after %q", thread, after), values(t, r.Checkpoints(background, thread, after)))
			for _, name := range some(seen.names.list()) {
				for _, prefix := range prefixes(name) {
					f.once(t, fmt.Sprintf("branches %q… of %v after %q", prefix, thread, after), func() any { return values(t, r.Branches(background, thread, prefix, after)) })
				}
			}
		}
	}
}

func (m *Model) pages(f Facts, seen *Census) {
	for _, after := range some(seen.threads.list()) {
		f[fmt.Sprint("threads after ", after)] = m.threadsWhere(func(t structure.Thread) bool { return t.ID.Compare(after) > 0 })
	}
	for _, after := range some(seen.contexts.list()) {
		where := func(accept func(v backend.Context) bool) []backend.Context {
			return m.viewsWhere(func(v backend.Context) bool { return v.ID.Compare(after) > 0 && accept(v) })
		}
		f[fmt.Sprint("contexts alone after ", after)] = where(func(v backend.Context) bool { return v.Thread.IsZero() })
		f[fmt.Sprint("contexts after ", after)] = where(func(backend.Context) bool { return true })
		for _, thread := range some(seen.threads.list()) {
			f[fmt.Sprintf("contexts of %v after %v", thread, after)] = where(func(v backend.Context) bool { return v.Thread == thread })
		}
		for _, parent := range some(seen.contexts.list()) {
			f[fmt.Sprintf("children of %v after %v", parent, after)] = where(func(v backend.Context) bool { return v.Parent == parent })
		}
	}
	for _, thread := range some(seen.threads.list()) {
		for _, after := range some(seen.names.list()) {
			f[fmt.Sprintf("checkpoints of %v after %q", thread, after)] = m.checkpointsWhere(func(c structure.Checkpoint) bool {
				return c.Thread == thread && c.Name > after
			})
			for _, name := range some(seen.names.list()) {
				for _, prefix := range prefixes(name) {
					f[fmt.Sprintf("branches %q… of %v after %q", prefix, thread, after)] = m.branchesWhere(func(b structure.Branch) bool {
						return b.Thread == thread && b.Name > after && strings.HasPrefix(b.Name, prefix)
					})
				}
			}
		}
	}
}
