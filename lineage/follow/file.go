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
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// file is a file that is followed, or that was.
type file struct {
	path    string
	folder  *folder // nil if no folder that is followed has it
	pattern int     // of the folder that matches it
	state   *State  // nil before it was looked at
	now     stamp   // as of the last look
	queued  bool
	unsaved bool
	// partial is since when the file has ended without the end of a line, and size its size then.
	partial     time.Time
	partialSize int64
	reader      *reader // nil unless the file is active
	rows        *rowsOf // nil unless it is a database that was read lately
	failures    int
	begunAgain  bool      // it is read again because a conversation is there that it waited for
	rest        time.Time // until when a database that changes all the time is not read again
}

// stamp is what changes when a file does.
type stamp struct {
	size, modified int64
	beside         int64 // of what belongs to it
	mode           fs.FileMode
}

// stat sets now.
func (f *file) stat() error {
	info, err := os.Lstat(f.path)
	if err != nil {
		return err
	}
	f.now = stampOf(info)
	if name := beside(f.path); name != "" {
		f.now.beside = newest(name)
	}
	return nil
}

// newest returns the time of a file, or of a folder with messages of OpenCode and the folders with their parts, the latest of them, in
// nanoseconds since 1970. It is 0 if there is none.
func newest(name string) int64 {
	info, err := os.Lstat(name)
	if err != nil {
		return 0
	}
	at := info.ModTime().UnixNano()
	if !info.IsDir() {
		return at
	}
	messages, _ := os.ReadDir(name) // what is not listed is read when the session itself changes
	for _, m := range messages {
		if id, ok := strings.CutSuffix(m.Name(), ".json"); ok {
			if info, err := os.Lstat(filepath.Join(name, "..", "..", "part", id)); err == nil {
				at = max(at, info.ModTime().UnixNano())
			}
		}
	}
	return at
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{size: info.Size(), modified: info.ModTime().UnixNano(), mode: info.Mode()}
}

// walSuffix ends the name of the log that SQLite keeps beside a database.
const walSuffix = "-wal"

func isDatabase(path string) bool {
	return strings.HasSuffix(path, ".db") || strings.HasSuffix(path, ".vscdb")
}

// clineSuffix ends the name of a session of Cline, which has what else is known of it in a file beside it.
const clineSuffix = ".messages.json"

// beside returns the path of what is read with a file, empty if there is nothing: the log of a database, what Cline states of a
// session, the messages of OpenCode.
func beside(path string) string {
	if session, ok := strings.CutSuffix(path, clineSuffix); ok {
		return session + ".json"
	}
	if isDatabase(path) {
		return path + walSuffix
	}
	if session, ok := strings.CutSuffix(filepath.Base(path), ".json"); ok && strings.HasPrefix(session, "ses_") {
		return filepath.Join(filepath.Dir(path), "..", "..", "message", session) // the folder of the messages of a session of OpenCode
	}
	return ""
}

// besideOf returns the name of the file that a name is beside of, or the name itself.
func besideOf(name string) string {
	if base := strings.TrimSuffix(name, ".json"); base != name && !strings.HasSuffix(name, clineSuffix) {
		return base + clineSuffix
	}
	return strings.TrimSuffix(name, walSuffix)
}

// byLines reports whether a file consists of lines, of which the last may not be complete.
func (f *file) byLines() bool { return strings.HasSuffix(f.path, ".jsonl") }

// move sets the path of the file.
func (f *file) move(path string) {
	f.path = path
	if f.state != nil {
		f.state.setPath(path)
	}
}

// otherPath returns the path of the file when its agent compresses it, or has it again as it was.
func (f *file) otherPath() string {
	if plain := fileKey(f.path); plain != f.path {
		return plain
	}
	return f.path + compressedSuffix
}

// unchanged reports whether all of the file was read as it is now.
func (f *file) unchanged() bool {
	s := f.state
	return s != nil && s.Bytes == s.Size && s.Size == f.now.size && s.Modified == f.now.modified && s.Beside == f.now.beside
}

// look looks at a file that may have changed, and is read next if it has.
func (r *run) look(f *file) {
	err := f.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.gone(f)
	case err != nil:
		r.fail(f, err)
	default:
		r.consider(f, true)
	}
}

// seen is look for a file that was found by a scan, and is read after those found before.
func (r *run) seen(f *file) { r.consider(f, false) }

// consider enters a file into the queue if it has changed.
func (r *run) consider(f *file, first bool) {
	if f.state == nil {
		f.state = &State{}
		f.state.setPath(f.path)
	}
	if !f.state.Gone.IsZero() {
		f.state.Gone = time.Time{}
		r.changed(f)
	}
	again := f.state.LeftOut == OtherProject && !r.options.leavesOut(f.state.Project)
	if f.queued || f.folder == nil || f.folder.unread || f.unchanged() && !again {
		return
	}
	if r.clock.Now().Before(f.rest) {
		r.waiting[f] = f.rest
		return
	}
	f.queued = true
	r.total += f.now.size
	if first {
		r.queue = append([]*file{f}, r.queue...)
	} else {
		r.queue = append(r.queue, f)
	}
}

// gone notes that a file is missing.
func (r *run) gone(f *file) {
	delete(r.waiting, f)
	f.partial = time.Time{}
	if other := f.otherPath(); f.folder != nil && exists(other) {
		f.move(other)
		r.look(f)
		return
	}
	if f.state == nil {
		delete(r.files, fileKey(f.path))
		return
	}
	if f.state.Gone.IsZero() {
		f.state.Gone = r.clock.Now()
		r.changed(f)
		r.options.Events(Event{Kind: Gone, Agent: f.state.Agent, Path: f.path})
	}
}

// fail notes why a file cannot be read. It is tried again later.
func (r *run) fail(f *file, err error) {
	if f.state == nil {
		f.state = &State{}
		f.state.setPath(f.path)
	}
	if f.state.Error != err.Error() {
		f.state.Error = err.Error()
		r.changed(f)
		r.options.Events(Event{Kind: Failed, Agent: f.agent(), Path: f.path, Err: err})
	}
	r.waiting[f] = r.clock.Now().Add(min(retryFirst<<min(f.failures, 20), retryLast))
	f.failures++
}

// A file that cannot be read is tried again after retryFirst, then after twice the time, up to retryLast.
const (
	retryFirst = 10 * time.Second
	retryLast  = time.Hour
)

func (f *file) agent() string {
	if f.folder == nil {
		return f.state.Agent
	}
	return f.folder.agent.Name
}

// read reads what is new in a file. An error is one of the store, or of the context.
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
		f.failures = 0
		return nil
	case errors.Is(err, fs.ErrNotExist) && !exists(f.path):
		r.gone(f)
		return nil
	case errors.Is(err, lineage.ErrClosed), errors.Is(err, lineage.ErrReadOnly), errors.Is(err, lineage.ErrLocked):
		return err
	}
	r.fail(f, err)
	return nil
}

// readFile reads what is new in a file.
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
	err = r.readLines(ctx, f, opened, now, end, false)
	if errors.Is(err, importer.ErrStale) {
		err = r.readLines(ctx, f, opened, now, end, true)
	}
	if errors.Is(err, archive.ErrCannotGrow) {
		return r.importFile(ctx, f)
	}
	return err
}

var errNotRegular = fmt.Errorf("not a regular file: %w", archive.ErrRefused)

// stillLeftOut reports whether a file that was left out before still is, without reading it.
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

// lineWait is how long a file must not change before its last line is read without its end.
const lineWait = 10 * time.Second

// end returns up to where a file of lines is read now: to the end of its last line. What follows waits.
func (r *run) end(f *file, opened *os.File, now stamp) (int64, error) {
	end, err := lastLineEnd(opened, now.size)
	if err != nil || end == now.size {
		f.partial = time.Time{}
		return end, err
	}
	if f.partial.IsZero() || f.partialSize != now.size {
		f.partial, f.partialSize = r.clock.Now(), now.size
		if r.options.Once {
			f.partial = time.Unix(0, now.modified) // there is no later
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

// A database is read whole when it has changed. One that takes restFrom or longer is read again after restFactor times that, at most
// after restMost, so that following an agent that writes all the time takes a small part of a processor.
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
	t := &taking{ctx: ctx, run: r, path: f.path, known: f.folder.project}
	overtaken := false
	t.rows = func(c *archive.Conversation) error {
		err := r.keepRows(ctx, f, c.SourceID, c.Rows)
		overtaken = isOvertaken(err)
		return err
	}
	o := r.archiveOptions(f, t)
	o.Rows = f.folder.agent.Name != ""
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
	}
	return err
}

func (r *run) archiveOptions(f *file, t *taking) importer.Options {
	members := map[string]string{archive.KeyMachine: r.options.Machine.Name}
	agent := &f.folder.agent
	if agent.Shares {
		members[archive.KeyAgent] = agent.Name
	}
	if agent.Counts {
		of := hashOf([]byte(r.options.Machine.ID + " " + f.folder.root))
		t.local = hex.EncodeToString(of[:6])
	}
	if f.folder.project != "" {
		members[archive.KeyProject] = f.folder.project
	}
	more, _ := json.Marshal(members) // text always marshals
	return importer.Options{
		Unsynced: true, // save syncs
		Format:   f.folder.format, Formats: t.formats(r.options.Formats), Limits: r.options.Limits, Metadata: more,
	}
}

// settleTime is how long a file must be unchanged until its time says that: file systems count time in
// steps of some milliseconds.
const settleTime = 100 * time.Millisecond

// settled returns the time of a file that was read, or 0 if it may change without getting another one: then
// the file is looked at again.
func (r *run) settled(f *file, now stamp) int64 {
	if time.Since(time.Unix(0, now.modified)).Abs() >= settleTime {
		return now.modified
	}
	if at := r.clock.Now().Add(settleTime); r.waiting[f].IsZero() || at.Before(r.waiting[f]) {
		r.waiting[f] = at
	}
	return 0
}

// settle waits until the times of files that changed just before they were read say whether they changed since.
// The next run reads those again.
func (r *run) settle(ctx context.Context) error {
	var recent []*file
	for f := range r.waiting {
		if s := f.state; s.Modified == 0 && s.LeftOut == "" && s.Bytes == s.Size && f.byLines() {
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
			if err == nil && sum != nil && found.Is.Bytes == f.state.Bytes {
				f.state.Modified = stampOf(info).modified
				r.changed(f)
			}
		}
		opened.Close()
	}
	return context.Cause(ctx)
}

// took sets the state of a file that was read up to an offset.
func (r *run) took(f *file, t *taking, report *importer.Report, now stamp, end int64) {
	was := f.state
	is := &State{
		Agent: f.agent(), Bytes: end, Size: now.size, Modified: r.settled(f, now), Beside: now.beside,
		Conversations: slices.Clone(t.ids), LeftOut: t.leftOut(), Project: t.project,
	}
	if f.reader != nil && is.LeftOut == "" && f.reader.growing.Session() == "" {
		is.Conversations = nil // it has no message, and so no thread yet
	}
	is.setPath(f.path)
	if len(report.Formats) > 0 {
		is.Format = report.Formats[0]
	}
	event := Event{
		Kind: Read, Agent: is.Agent, Path: f.path, Bytes: max(end-was.Bytes, 0), Messages: report.NewMessages, Conversations: slices.Clone(t.stored),
	}
	if f.reader != nil && f.reader.rounds > 1 { // what was read before counts, too
		is.Skipped, is.Error, is.Format, is.Waits = was.Skipped, was.Error, was.Format, was.Waits
	}
	for _, d := range report.Skipped {
		if elsewhere := (*archive.ElsewhereError)(nil); errors.As(d, &elsewhere) && (f.reader == nil || f.reader.fresh) {
			is.Waits = elsewhere.SourceID
		}
		if !errors.Is(d, archive.ErrNoMessages) {
			is.Skipped++
			event.Skipped++
			event.Err = cmp.Or(event.Err, error(d))
		}
	}
	more := report.SkippedCount - int64(len(report.Skipped))
	is.Skipped += more
	event.Skipped += more
	if is.Error == "" && event.Err != nil {
		is.Error = event.Err.Error()
	}
	for _, id := range is.Conversations {
		r.conversations[id] = true
	}
	if is.Waits == "" || !f.begunAgain {
		defer r.beginAgain(is.Conversations, f)
	}
	if f.begunAgain = false; is.Waits != "" && is.Waits != was.Waits {
		r.waits[is.Waits] = append(r.waits[is.Waits], f)
	}
	f.state = is
	r.count++
	r.changed(f)
	if is.LeftOut == "" {
		r.options.Events(event)
		return
	}
	is.Skipped, is.Error = 0, "" // nothing of it is wanted
	if was.LeftOut != is.LeftOut {
		r.options.Events(Event{Kind: LeftOut, Agent: is.Agent, Path: f.path, Reason: string(is.LeftOut)})
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
