package follow

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// read reads the new part of a file. It returns only errors of the store or the context.
func (r *run) read(ctx context.Context, f *file) error {
	f.queued, r.told = false, false
	delete(r.waiting, f)
	size := f.now.size
	r.options.Events(Event{Kind: Reading, Agent: f.agent(), Path: f.path, Done: r.done, Total: r.total})
	err := r.readFile(ctx, f)
	r.done += size
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err == nil:
		if f.reader == nil || !f.reader.record.pending() {
			f.failures = 0
		}
		return nil
	case errors.Is(err, fs.ErrNotExist) && !exists(f.path):
		r.gone(f)
		return nil
	}
	if err := r.setAside(ctx, f, err); err != nil {
		return err
	}
	if !r.saveAt.IsZero() && !r.clock.Now().Before(r.saveAt) { // shows whether it was the store
		return r.save(ctx)
	}
	return nil
}

// readFile reads the new part of a file.
func (r *run) readFile(ctx context.Context, f *file) error {
	if f.now.mode&fs.ModeSymlink != 0 {
		return errLink
	}
	if !f.now.mode.IsRegular() {
		return errNotRegular
	}
	if out, err := r.stillLeftOut(ctx, f); out || err != nil {
		return err
	}
	if f.folder.index {
		r.readIndex(ctx, f)
		return nil
	}
	if f.compressedLines() {
		if read, err := r.readCompressed(ctx, f); read || err != nil {
			return err
		}
	}
	if !f.byLines() {
		return r.importFile(ctx, f)
	}
	opened, err := vfs.OpenFile(f.path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return err
	}
	now := stampOf(info)
	end, err := r.end(f, opened, now)
	if err != nil || end == 0 {
		return err
	}
	return r.readFrom(ctx, f, opened, now, end)
}

// readFrom reads the lines of an open file up to an offset.
func (r *run) readFrom(ctx context.Context, f *file, opened *os.File, now stamp, end int64) error {
	err := r.readLines(ctx, f, opened, now, end, false)
	if errors.Is(err, importer.ErrStale) {
		err = r.readLines(ctx, f, opened, now, end, true)
	}
	if errors.Is(err, archive.ErrCannotGrow) {
		return r.importFile(ctx, f)
	}
	return err
}

// stillLeftOut reports, without reading the file, whether a file that was left out must still be.
func (r *run) stillLeftOut(ctx context.Context, f *file) (bool, error) {
	switch s := f.state; s.LeftOut {
	case OtherProject:
		if !r.options.leavesOut(s.Project) {
			return false, nil
		}
	case Deleted:
		for _, id := range s.Conversations {
			_, err := ThreadOf(ctx, r.store, id)
			if !errors.Is(err, lineage.ErrNotFound) {
				return false, err
			}
		}
	default:
		return false, nil
	}
	f.state.Size, f.state.Bytes, f.state.Modified, f.state.Beside = f.now.size, f.now.size, f.now.modified, f.now.beside
	r.changed(f)
	return true, nil
}

// lineWait is how long a file must be unchanged before an incomplete last line is read.
const lineWait = 10 * time.Second

// end returns the offset up to which a file of lines is read now: the end of the last complete line.
func (r *run) end(f *file, opened *os.File, now stamp) (int64, error) {
	end, err := lastLineEnd(opened, now.size)
	if err != nil || end == now.size {
		f.partial = time.Time{}
		return end, err
	}
	if f.partial.IsZero() || f.partialSize != now.size {
		f.partial, f.partialSize = r.clock.Now(), now.size
		if r.options.Once {
			f.partial = time.Unix(0, now.modified) // no later change is known
		}
	}
	if at := f.partial.Add(lineWait); r.clock.Now().Before(at) {
		r.waiting[f] = at
		return end, nil
	}
	return now.size, nil
}

// lastLineEnd returns the offset after the last newline in the first size bytes.
func lastLineEnd(r io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, 64<<10))
	for end := size; end > 0; {
		part := buf[:min(end, int64(len(buf)))]
		if _, err := r.ReadAt(part, end-int64(len(part))); err != nil {
			return 0, fmt.Errorf("find the last line: %w", err)
		}
		for i := len(part) - 1; i >= 0; i-- {
			if part[i] == '\n' {
				return end - int64(len(part)) + int64(i) + 1, nil
			}
		}
		end -= int64(len(part))
	}
	return 0, nil
}

// A database is read as a whole when it has changed. If that takes restFrom or longer, the next read is at least
// restFactor times that later, but at most restMost, so that following an agent that writes constantly takes a small
// part of a processor.
const (
	restFrom   = 200 * time.Millisecond
	restFactor = 10
	restMost   = 10 * time.Minute
)

// importFile imports a file that is not read by lines.
func (r *run) importFile(ctx context.Context, f *file) error {
	if began := r.clock.Now(); isDatabase(f.path) {
		defer func() {
			if now := r.clock.Now(); now.Sub(began) >= restFrom {
				f.rest = now.Add(min(restFactor*now.Sub(began), restMost))
			}
		}()
	}
	t := &taking{ctx: ctx, run: r, path: f.path, agent: f.agent(), known: f.folder.project}
	overtaken := false
	t.rows = func(c *archive.Conversation) error {
		err := r.keepRows(ctx, f, c.SourceID, t.branchOf(c.SourceID), c.Rows)
		overtaken = isOvertaken(err)
		return err
	}
	o := r.archiveOptions(f, t)
	o.Rows = f.folder.agent.Name != ""
	f.held = time.Time{}
	o.Hold = func(changed time.Time, complete bool) bool {
		most := holdTime
		if complete {
			most = holdComplete
		}
		holds := r.clock.Now().Sub(changed).Abs() < most && !(complete && r.options.Once)
		if until := changed.Add(most); holds && (f.held.IsZero() || until.Before(f.held)) {
			f.held = until
		}
		return holds
	}
	report, err := importer.Import(ctx, r.store, archive.Path(f.path), o)
	if err = t.outcome(err); err != nil {
		r.dropRows(f)
		if overtaken {
			r.waiting[f] = r.clock.Now()
			return nil
		}
		return err
	}
	again, err := r.flushRows(ctx, f)
	if err == nil && !again {
		again, err = r.recordWhole(ctx, f, t)
	}
	switch {
	case again:
		r.waiting[f] = r.clock.Now()
	case err == nil:
		r.took(f, t, &report, f.now, f.now.size)
		if !f.held.IsZero() {
			f.state.Modified = 0 // a part is not read yet
			r.waiting[f] = f.held
		}
	}
	return err
}

// A message that its agent is still writing must be unchanged for holdTime before it is read, and one that may be complete
// for holdComplete, unless no later look follows. Each state of a message that is read is a version, on a branch of its own.
const (
	holdTime     = 10 * time.Minute
	holdComplete = time.Minute
)

func (r *run) archiveOptions(f *file, t *taking) importer.Options {
	members := map[string]string{archive.KeyMachine: r.options.Machine.Name}
	agent := &f.folder.agent
	if agent.Shares {
		members[archive.KeyAgent] = agent.Name
	}
	if agent.Counts {
		origin := hashOf([]byte(r.options.Machine.ID + " " + f.folder.root))
		t.local = hex.EncodeToString(origin[:6])
	}
	if f.folder.project != "" {
		members[archive.KeyProject] = f.folder.project
	}
	more, _ := json.Marshal(members) // text always marshals
	return importer.Options{
		Unsynced: true, // save syncs
		Outlines: r.outlines,
		Format:   f.format(), Formats: t.formats(r.options.Formats), Limits: r.options.Limits, Metadata: more,
	}
}

// settleTime is how long a file must be unchanged before its modification time is reliable: file systems count time
// in steps of some milliseconds.
const settleTime = 100 * time.Millisecond

// settled returns the modification time of a file that was read, or 0 if the file may change without getting another
// time. Then it is examined again.
func (r *run) settled(f *file, now stamp) int64 {
	if time.Since(time.Unix(0, now.modified)).Abs() >= settleTime {
		return now.modified
	}
	if at := r.clock.Now().Add(settleTime); r.waiting[f].IsZero() || at.Before(r.waiting[f]) {
		r.waiting[f] = at
	}
	return 0
}

// settle waits until the modification times of recently changed files are reliable. The next run reads those that
// changed meanwhile.
func (r *run) settle(ctx context.Context) error {
	var recent []*file
	for f := range r.waiting {
		if s := f.state; s.Modified == 0 && s.LeftOut == "" && s.Bytes == s.Size && f.byLines() && f.held.IsZero() {
			recent = append(recent, f)
		}
	}
	if len(recent) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(settleTime):
	}
	for _, f := range recent {
		opened, err := vfs.OpenFile(f.path, os.O_RDONLY)
		if err != nil {
			continue
		}
		if info, err := opened.Stat(); err == nil && info.Size() == f.state.Size {
			var found *Source
			var sum hash.Hash
			found, sum, err = r.recorded(ctx, f, opened, stampOf(info))
			if err == nil && sum != nil && found.Recorded.Bytes == f.state.Bytes {
				f.state.Modified = stampOf(info).modified
				r.changed(f)
			}
		}
		opened.Close()
	}
	return context.Cause(ctx)
}

// took records that a file was read up to an offset.
func (r *run) took(f *file, t *taking, report *importer.Report, now stamp, end int64) {
	was := f.state
	state := &State{
		Agent: f.agent(), Bytes: end, Size: now.size, Modified: r.settled(f, now), Beside: now.beside,
		Conversations: slices.Clone(t.ids), LeftOut: t.leftOut(), Project: t.project, moved: was.moved,
	}
	if f.reader != nil && state.LeftOut == "" && f.reader.growing.Session() == "" {
		state.Conversations = nil // it has no message, and so no thread yet
	}
	state.setPath(f.path)
	if len(report.Formats) > 0 {
		state.Format = report.Formats[0]
	}
	event := Event{
		Kind: Read, Agent: state.Agent, Path: f.path, Bytes: max(end-was.Bytes, 0), Messages: report.NewMessages, Conversations: slices.Clone(t.stored),
	}
	if f.reader != nil && f.reader.rounds > 1 { // earlier reads count, too
		state.Skipped, state.Error, state.Format, state.Waits = was.Skipped, was.Error, was.Format, was.Waits
	}
	if f.reader != nil && !f.reader.fresh {
		state.Waits = was.Waits // the beginning does not count now
	}
	state.Reader = r.versionOf(state.Format)
	for _, d := range report.Skipped {
		if elsewhere := (*archive.ElsewhereError)(nil); errors.As(d, &elsewhere) && (f.reader == nil || f.reader.fresh) {
			state.Waits = elsewhere.SourceID
		}
		if !errors.Is(d, archive.ErrNoMessages) {
			state.Skipped++
			event.Skipped++
			event.Err = cmp.Or(event.Err, error(d))
		}
	}
	more := report.SkippedCount - int64(len(report.Skipped))
	state.Skipped += more
	event.Skipped += more
	if state.Error == "" && event.Err != nil {
		state.Error = event.Err.Error()
	}
	for _, id := range state.Conversations {
		r.conversations[id] = true
	}
	if state.Waits == "" || !f.begunAgain {
		defer r.beginAgain(state.Conversations, f)
	}
	if f.begunAgain = false; state.Waits != "" && state.Waits != was.Waits {
		r.waits[state.Waits] = append(r.waits[state.Waits], f)
	}
	f.state = state
	r.count++
	if isDatabase(f.path) {
		r.databases++
	}
	r.changed(f)
	if state.LeftOut == "" {
		r.options.Events(event)
		return
	}
	state.Skipped, state.Error = 0, "" // nothing of it is wanted
	if was.LeftOut != state.LeftOut {
		r.options.Events(Event{Kind: LeftOut, Agent: state.Agent, Path: f.path, Reason: string(state.LeftOut)})
	}
}

// beginAgain lets files be read again from their start that waited for conversations of another file, which was read.
func (r *run) beginAgain(conversations []string, read *file) {
	for _, id := range conversations {
		waits := r.waits[id]
		delete(r.waits, id)
		for _, f := range waits {
			if f == read || f.state.Waits != id || !f.state.Gone.IsZero() {
				continue
			}
			r.dropReader(f)
			f.state.Bytes, f.begunAgain = 0, true
			r.changed(f)
			r.look(f)
			if !f.queued { // it is not followed now
				r.waits[id] = append(r.waits[id], f)
			}
		}
	}
}
