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

// file is a followed file, or one that was followed.
type file struct {
	path    string
	folder  *folder // nil if the file is in no followed folder
	pattern int     // index of the folder's pattern that matches it
	state   *State  // nil until it is examined
	now     stamp   // when it was last examined
	queued  bool
	unsaved bool
	// partial is the time since which the last line has been incomplete; size was the size of the file then.
	partial     time.Time
	partialSize int64
	reader      *reader // nil unless the file is active
	rows        *rowsOf // nil unless the file is a database that was read recently
	failures    int
	begunAgain  bool      // it is read again because the conversation that it waited for has appeared
	undecided   stamp     // what it was when nothing told whether its project is left out
	rest        time.Time // until then a constantly changing database is not read again
}

// stamp is what shows that a file has changed.
type stamp struct {
	size, modified int64
	beside         int64 // of what is read with it
	mode           fs.FileMode
}

// stat updates now.
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

// newest returns the modification time of a file, in nanoseconds since 1970, or 0 if it does not exist. For a folder
// with messages of OpenCode it returns the latest time of the folder and the folders with the messages' parts.
func newest(name string) int64 {
	info, err := os.Lstat(name)
	if err != nil {
		return 0
	}
	at := info.ModTime().UnixNano()
	if !info.IsDir() {
		return at
	}
	messages, _ := os.ReadDir(name) // what is missed here is read when the session itself changes
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

// walSuffix is the suffix of the log next to a SQLite database.
const walSuffix = "-wal"

func isDatabase(path string) bool {
	return strings.HasSuffix(path, ".db") || strings.HasSuffix(path, ".vscdb") || strings.HasSuffix(path, ".sqlite")
}

// clineSuffix is the suffix of a session file of Cline, which has a second file with other data of the session.
const clineSuffix = ".messages.json"

// beside returns the path of what is read together with a file, or "": the log of a database, the second file of a
// session of Cline, the messages of OpenCode.
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

// besideOf is the inverse of beside. It returns other names unchanged.
func besideOf(name string) string {
	if base := strings.TrimSuffix(name, ".json"); base != name && !strings.HasSuffix(name, clineSuffix) {
		return base + clineSuffix
	}
	return strings.TrimSuffix(name, walSuffix)
}

// byLines reports whether a file consists of lines, the last of which may be incomplete.
func (f *file) byLines() bool { return strings.HasSuffix(f.path, ".jsonl") }

// move sets the path of the file.
func (f *file) move(path string) {
	f.path = path
	if f.state != nil {
		f.state.setPath(path)
	}
}

// otherPath returns the path that the file has when its agent compresses it, or decompresses it.
func (f *file) otherPath() string {
	if plain := fileKey(f.path); plain != f.path {
		return plain
	}
	return f.path + compressedSuffix
}

// unchanged reports whether the current content of the file was read completely.
func (f *file) unchanged() bool {
	s := f.state
	return s != nil && s.Bytes == s.Size && s.Size == f.now.size && s.Modified == f.now.modified && s.Beside == f.now.beside
}

// look examines a file that may have changed. If it has, it is read next.
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

// seen is look for a file found by a scan, which is read after those found earlier.
func (r *run) seen(f *file) { r.consider(f, false) }

// consider queues a file if it has changed.
func (r *run) consider(f *file, first bool) {
	if f.state == nil {
		f.state = &State{}
		f.state.setPath(f.path)
	}
	if !f.state.Gone.IsZero() {
		f.state.Gone = time.Time{}
		r.changed(f)
		r.beginAgain(f.state.Conversations, f)
	}
	again := f.state.LeftOut == OtherProject && !r.options.leavesOut(f.state.Project)
	if f.queued || f.folder == nil || f.folder.unread || f.unchanged() && !again || f.now == f.undecided {
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

// gone records that a file is missing.
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

// fail records why a file cannot be read. It will be tried again.
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

// A file that cannot be read is tried again after retryFirst, then after twice that time, and so on, up to retryLast.
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

// took records that a file was read up to an offset.
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
	if f.reader != nil && f.reader.rounds > 1 { // earlier reads count, too
		is.Skipped, is.Error, is.Format, is.Waits = was.Skipped, was.Error, was.Format, was.Waits
	}
	if f.reader != nil && !f.reader.fresh {
		is.Waits = was.Waits // the beginning does not count now
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
