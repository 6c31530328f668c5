package follow

import (
	"context"
	"iter"
	"path/filepath"
	"slices"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A message that was left out because its agent may write it again is only recorded with its file, or with the rows of its
// session. When the file is gone, nothing more is written to it: what is recorded is read to its end.

// readHeld imports what is recorded of a file that is gone: the file, or the rows of each session of a database. An error of
// one session does not stop the others.
func (r *run) readHeld(ctx context.Context, f *file, folder *folder) (failed error) {
	paths := []string{RecordedPath(f.path)}
	if isDatabase(f.path) {
		paths = paths[:0]
		for _, session := range f.state.Conversations {
			paths = append(paths, rowsPath(f.path, session))
		}
	}
	for _, path := range paths {
		found, err := FindSource(ctx, r.store, r.options.Machine.ID, path)
		if err != nil {
			err = &importer.StoreError{Err: err}
		} else {
			err = r.importRecorded(ctx, f, folder, found)
		}
		if context.Cause(ctx) != nil {
			return err
		}
		if failed == nil || isReadLater(err) {
			failed = err
		}
	}
	return failed
}

// importRecorded imports the recorded content of a file, or the rows of a session, as a whole.
func (r *run) importRecorded(ctx context.Context, f *file, folder *folder, found *Source) error {
	t := r.takingOf(ctx, f)
	t.known = folder.project
	o := r.archiveOptions(&file{path: f.path, folder: folder}, t)
	o.Format = f.state.Format
	lines := &lineReader{}
	lines.next, lines.stop = iter.Pull2(found.Lines(ctx))
	defer lines.stop()
	report, err := importer.Import(ctx, r.store, archive.Stream(filepath.Base(found.About.Path), lines), o)
	if err = t.outcome(err); err == nil && report.NewMessages > 0 {
		r.options.Events(Event{Kind: Read, Agent: f.state.Agent, Path: f.path, Messages: report.NewMessages, Conversations: slices.Clone(t.stored)})
	}
	return err
}
