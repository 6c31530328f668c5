package follow

import (
	"context"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// newRun returns a run. The options have their defaults.
func newRun(ctx context.Context, store *lineage.Store, o Options) (*run, error) {
	r := &run{
		options: o, store: store.Unsynced(), kept: keptFor(store, o.Machine), clock: o.Clock,
		files: make(map[string]*file), conversations: make(map[string]bool), waiting: make(map[*file]time.Time),
		waits: make(map[string][]*file), outlines: importer.NewOutlines(), changedFolders: make(map[string]string),
	}
	states, err := r.kept.states(ctx)
	if err != nil {
		return nil, err
	}
	if r.folderErrors, err = r.kept.folderErrors(ctx); err != nil {
		return nil, err
	}
	for path, state := range states {
		f := &file{path: path, state: state, begunAgain: state.Waits != "" && state.Bytes == 0}
		if r.files[RecordedPath(path)] = f; state.Waits != "" {
			r.waits[state.Waits] = append(r.waits[state.Waits], f)
		}
		for _, id := range state.Conversations {
			r.conversations[id] = true
		}
	}
	err = r.chooseFolders()
	r.findOutdated()
	return r, err
}
