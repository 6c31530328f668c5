package follow

import (
	"context"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// run is a run in progress. All of its fields belong to one goroutine.
type run struct {
	options Options
	store   *lineage.Store // save syncs what is added
	kept    *machineStore
	clock   Clock
	folders []*folder
	files   map[string]*file
	// conversations are the source ids of the threads of all files, according to their states.
	conversations map[string]bool
	watch         watching
	queue         []*file // files to read, in this order
	// waiting are the files to examine again at a given time.
	waiting map[*file]time.Time
	active  []*file // files with open readers, the most recently used last
	// waits are the files that wait for a conversation: see State.Waits.
	waits map[string][]*file
	// outlines are what was read of the threads that many files belong to.
	outlines *importer.Outlines
	// outdated are the files whose recorded content is read again: an older version has read them, or they are gone and a
	// message of them was held back.
	outdated []*file
	// withRows are the databases whose stored rows are cached.
	withRows []*file
	unsaved  []*file
	saveAt   time.Time
	// folderErrors are the reported errors of folders, by path. changedFolders are those that changed since they were saved; ""
	// is a folder that can be read again.
	folderErrors, changedFolders map[string]string

	// done and total are numbers of bytes: those read, and those to read, since the last Waiting. count is the number
	// of files read, databases how many of them are databases. waitingSent is set if nothing has happened since.
	done, total, count, databases int64
	waitingSent                   bool
}

// The states of files are saved when saveMost of them have changed, or after saveAfter.
const (
	saveMost  = 256
	saveAfter = 5 * time.Second
)

// saveTime limits how long a run saves states after it was stopped. Tests change it.
var saveTime = time.Second

// changed marks the state of a file as changed.
func (r *run) changed(f *file) {
	if f.unsaved {
		return
	}
	f.unsaved = true
	r.unsaved = append(r.unsaved, f)
	r.saveSoon()
}

// saveSoon saves what has changed, in saveAfter at the latest.
func (r *run) saveSoon() {
	if r.saveAt.IsZero() {
		r.saveAt = r.clock.Now().Add(saveAfter)
	}
}

// takingOf returns the taking of a file, which stores nothing yet.
func (r *run) takingOf(ctx context.Context, f *file) *taking {
	return &taking{ctx: ctx, store: r.store, choice: &r.options.Choice, conversations: r.conversations, path: f.path, agent: f.agent()}
}

// formatNamed returns the format with a name, the zero value if it is not read.
func (r *run) formatNamed(name string) (found archive.Format) {
	if i := slices.IndexFunc(r.options.Formats, func(f archive.Format) bool { return f.Name == name }); i >= 0 {
		found = r.options.Formats[i]
	}
	return found
}
