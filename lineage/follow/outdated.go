package follow

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// A later version of a reader may state more of a session, such as its title. A session that an earlier one has read is
// read again from its recorded lines, because its file may be gone.

// findOutdated sets the files to read again.
func (r *run) findOutdated() {
	for _, f := range r.files {
		if s := f.state; (f.byLines() || f.compressedLines()) && len(s.Conversations) > 0 && s.LeftOut == "" && s.Reader < r.versionOf(s.Format) {
			r.outdated = append(r.outdated, f)
		} else if r.heldBack(f) { // an earlier run did not come to it
			r.outdated = append(r.outdated, f)
		}
	}
	slices.SortFunc(r.outdated, func(a, b *file) int { return strings.Compare(a.path, b.path) })
}

// readOutdated reads what is recorded of a file again. It returns only errors of the store or the context. What the store
// cannot read now is tried again by the next run; what is erased, damaged or deleted is not.
func (r *run) readOutdated(ctx context.Context, f *file) error {
	held, version := r.heldBack(f), r.versionOf(f.state.Format)
	folder := f.folder
	if folder == nil { // it is gone
		folder = r.folderWith(f.path)
	}
	if folder == nil || !held && f.state.Reader >= version {
		return nil // its agent is not followed now, or it has been read meanwhile
	}
	read := r.readAgain
	if held {
		read = r.readHeld
	}
	err := read(ctx, f, folder)
	if err != nil && (context.Cause(ctx) != nil || r.storeFailed(ctx, f, err)) {
		return cmp.Or(context.Cause(ctx), err)
	}
	if isReadLater(err) {
		return nil
	}
	if held {
		f.state.Modified = f.state.Gone.UnixNano() // it is read
	} else {
		f.state.Reader = version
	}
	r.changed(f)
	return nil
}

// readAgain reads the recorded lines of a file for what a later version of their reader states.
func (r *run) readAgain(ctx context.Context, f *file, folder *folder) error {
	found, err := FindSource(ctx, r.store, r.options.Machine.ID, RecordedPath(f.path))
	if err != nil {
		return &importer.StoreError{Err: err}
	}
	r.options.Events(Event{Kind: Reading, Agent: f.agent(), Path: f.path, Done: r.done, Total: max(r.total, r.done)})
	known := true
	if err = r.readRecorded(ctx, f, folder, found, known); errors.Is(err, importer.ErrStale) {
		known = false
		err = r.readRecorded(ctx, f, folder, found, known)
	}
	return err
}

// readRecorded reads the recorded lines of a file. With known, messages are not looked up: the store has them.
func (r *run) readRecorded(ctx context.Context, f *file, folder *folder, found *Source, known bool) error {
	if !found.Recorded.Thread.IsZero() {
		return nil // a branch of a thread, which has its own title
	}
	t := r.takingOf(ctx, f)
	t.alone, t.resumed = true, map[string]*continuing{found.Recorded.Session: nil}
	o := r.archiveOptions(&file{path: f.path, folder: folder}, t)
	o.Format, o.Path = f.state.Format, f.path
	growing := importer.Grow(r.store, filepath.Base(RecordedPath(f.path)), o)
	defer growing.Close()
	if known {
		spans, err := found.Spans(ctx)
		if err != nil {
			return &importer.StoreError{Err: err}
		}
		growing.Known(found.Recorded.Lines, func(line int64) []lineage.SpanRef { return spans[line-1] })
	}
	lines := &lineReader{}
	lines.next, lines.stop = iter.Pull2(found.Lines(ctx))
	defer lines.stop()
	_, err := growing.Read(ctx, lines)
	return t.outcome(err)
}
