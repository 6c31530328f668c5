package follow

import (
	"context"
	"iter"
	"path/filepath"
	"slices"

	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A message that was left out because its agent may write it again is only recorded with its file. When the file is gone,
// nothing more is written to it: the recorded file is read to its end.

// importRecorded imports the recorded content of a file as a whole.
func (r *run) importRecorded(ctx context.Context, f *file, folder *folder, found *Source) error {
	t := r.takingOf(ctx, f)
	t.known = folder.project
	o := r.archiveOptions(&file{path: f.path, folder: folder}, t)
	o.Format = f.state.Format
	lines := &lineReader{}
	lines.next, lines.stop = iter.Pull2(found.Lines(ctx))
	defer lines.stop()
	report, err := importer.Import(ctx, r.store, archive.Stream(filepath.Base(RecordedPath(f.path)), lines), o)
	if err = t.outcome(err); err == nil && report.NewMessages > 0 {
		r.options.Events(Event{Kind: Read, Agent: f.state.Agent, Path: f.path, Messages: report.NewMessages, Conversations: slices.Clone(t.stored)})
	}
	return err
}
