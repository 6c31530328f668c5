package follow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
)

// Random session files grow, are rewritten, cut, renamed, copied and deleted while two runs follow them
// and are stopped and started. The store has what imports of the files have, as they were, and gives the
// files back as they are.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "follow-")
		require.NoError(t, err)
		defer os.RemoveAll(dir)
		m := newModel(t, dir)
		defer m.close()
		t.Repeat(map[string]func(*rapid.T){
			"new": m.newSession, "append": m.append, "half": m.appendHalf, "bad": m.appendBad, "rewrite": m.rewrite, "cut": m.cut,
			"rename": m.rename, "copy": m.copySession, "delete": m.delete, "touch": m.touch, "quiet": m.quiet, "restart": m.restart,
			"folder": m.moveFolder, "": func(*rapid.T) {},
		})
		m.check(t)
	})
}

type model struct {
	h          *home
	clock      *fakeClock
	store, ref *lineage.Store
	runs       [2]*following
	files      map[string]*modelFile // by path
	next       int
}

type modelFile struct {
	content string
	last    string // the id of the last line
}

func newModel(t *rapid.T, dir string) *model {
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	m := &model{h: &home{dir: dir}, clock: newClock(), files: make(map[string]*modelFile)}
	for _, store := range []**lineage.Store{&m.store, &m.ref} {
		*store, err = lineage.OpenMemory(context.Background(), lineage.Options{})
		require.NoError(t, err)
	}
	for i := range m.runs {
		m.start(t, i)
	}
	return m
}

func (m *model) start(t *rapid.T, i int) {
	o := m.h.options()
	o.Clock = m.clock
	m.runs[i] = start(t, m.store, o)
}

func (m *model) close() {
	for _, f := range m.runs {
		if f != nil {
			f.cancel()
			<-f.done
		}
	}
	m.store.Close()
	m.ref.Close()
}

// caughtUp waits until the runs have seen what was done, and imports into the other store the lines that
// they have read of a file.
func (m *model) caughtUp(t *rapid.T, paths ...string) {
	var running []*following
	for _, f := range m.runs {
		if f != nil {
			running = append(running, f)
		}
	}
	m.h.caughtUp(t, running...)
	for _, path := range paths {
		f := m.files[path]
		if f == nil {
			continue
		}
		m.imports(t, path, f.content[:strings.LastIndexByte(f.content, '\n')+1])
	}
}

func (m *model) imports(t *rapid.T, path, content string) {
	if content == "" {
		return
	}
	_, err := importer.Import(context.Background(), m.ref, archive.Stream(filepath.Base(path), strings.NewReader(content)), importer.Options{Format: "claude-code"})
	require.NoError(t, err)
}

func (m *model) path(t *rapid.T) string {
	if len(m.files) == 0 {
		m.newSession(t)
	}
	return rapid.SampledFrom(slices.Sorted(maps.Keys(m.files))).Draw(t, "file")
}

func (m *model) newPath(t *rapid.T) (id, path string) {
	m.next++
	id, name := session(m.next)
	return id, m.h.path(".claude", "projects", rapid.SampledFrom([]string{"-src-app", "-other"}).Draw(t, "project"), name)
}

func (m *model) line(t *rapid.T, f *modelFile, path string) string {
	m.next++
	id := fmt.Sprintf("line-%d", m.next)
	parent := f.last
	if rapid.IntRange(0, 5).Draw(t, "branch") == 0 {
		parent = firstLine(f.content)
	}
	f.last = id
	role := rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role")
	text := line(strings.TrimSuffix(filepath.Base(path), ".jsonl"), id, parent, role, fmt.Sprintf("text %d", m.next))
	switch rapid.IntRange(0, 9).Draw(t, "form") {
	case 0:
		text = strings.TrimSuffix(text, "\n") + "\r\n"
	case 1:
		text += "\n"
	case 2:
		text = `{"type":"file-history-snapshot","messageId":"` + id + `","snapshot":{}}` + "\n"
		f.last = parent
	}
	return text
}

// firstLine returns the id of the first line.
func firstLine(content string) string {
	var l struct{ UUID string }
	first, _, _ := strings.Cut(content, "\n")
	_ = json.Unmarshal([]byte(first), &l)
	return l.UUID
}

func (m *model) newSession(t *rapid.T) {
	_, path := m.newPath(t)
	f := &modelFile{}
	for range rapid.IntRange(1, 3).Draw(t, "lines") {
		f.content += m.line(t, f, path)
	}
	m.files[path] = f
	m.h.write(t, path, f.content)
	m.caughtUp(t, path)
}

func (m *model) add(t *rapid.T, path, text string) {
	m.files[path].content += text
	m.h.append(t, path, text)
	m.caughtUp(t, path)
}

func (m *model) append(t *rapid.T) {
	path := m.path(t)
	f := m.files[path]
	text := ""
	if !strings.HasSuffix(f.content, "\n") {
		text = "\n"
	}
	for range rapid.IntRange(1, 4).Draw(t, "lines") {
		text += m.line(t, f, path)
	}
	m.add(t, path, text)
}

// appendHalf appends a line in two parts.
func (m *model) appendHalf(t *rapid.T) {
	path := m.path(t)
	f := m.files[path]
	if !strings.HasSuffix(f.content, "\n") {
		return
	}
	text := m.line(t, f, path)
	at := rapid.IntRange(1, len(text)-1).Draw(t, "at")
	m.add(t, path, text[:at])
	if rapid.Bool().Draw(t, "rest") {
		m.add(t, path, text[at:])
	}
}

func (m *model) appendBad(t *rapid.T) {
	path := m.path(t)
	if strings.HasSuffix(m.files[path].content, "\n") {
		m.add(t, path, rapid.SampledFrom([]string{"{broken\n", "\xff\xfe\n", "[]\n", "\n", " \r\n", `{"type":"unknown kind","x":1}` + "\n"}).Draw(t, "line"))
	}
}

// replace replaces a file, at once or in place.
func (m *model) replace(t *rapid.T, path, content string) {
	m.files[path].content = content
	if rapid.Bool().Draw(t, "at once") {
		other := filepath.Join(m.h.dir, "new")
		m.h.write(t, other, content)
		require.NoError(t, os.Rename(other, path))
	} else {
		m.h.write(t, path, content)
	}
	m.caughtUp(t, path)
}

func (m *model) rewrite(t *rapid.T) {
	path := m.path(t)
	content := m.files[path].content
	m.next++
	text := strings.Replace(content, "text", fmt.Sprintf("changed %d", m.next), 1)
	if rapid.Bool().Draw(t, "same size") {
		text = strings.Replace(content, "text ", fmt.Sprintf("TE%02d ", m.next%100), 1)
	}
	if text != content {
		m.replace(t, path, text)
	}
}

func (m *model) cut(t *rapid.T) {
	path := m.path(t)
	f := m.files[path]
	lines := strings.SplitAfter(f.content, "\n")
	f.last = firstLine(f.content)
	m.replace(t, path, strings.Join(lines[:rapid.IntRange(1, len(lines)).Draw(t, "lines")], ""))
}

func (m *model) rename(t *rapid.T) {
	path := m.path(t)
	_, to := m.newPath(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o700))
	require.NoError(t, os.Rename(path, to))
	m.files[to] = m.files[path]
	delete(m.files, path)
	m.caughtUp(t, to)
}

// copySession copies the beginning of a session, as an agent does that resumes it.
func (m *model) copySession(t *rapid.T) {
	path := m.path(t)
	id, to := m.newPath(t)
	lines := strings.SplitAfter(m.files[path].content, "\n")
	content := strings.Join(lines[:rapid.IntRange(0, len(lines)-1).Draw(t, "lines")], "")
	if rapid.Bool().Draw(t, "new id") {
		content = strings.ReplaceAll(content, strings.TrimSuffix(filepath.Base(path), ".jsonl"), id)
	}
	f := &modelFile{content: content, last: firstLine(content)}
	f.content += m.line(t, f, to)
	m.files[to] = f
	m.h.write(t, to, f.content)
	m.caughtUp(t, to)
}

func (m *model) delete(t *rapid.T) {
	path := m.path(t)
	require.NoError(t, os.Remove(path))
	delete(m.files, path)
	m.caughtUp(t)
}

func (m *model) touch(t *rapid.T) {
	path := m.path(t)
	at := time.Now().Add(-time.Duration(rapid.IntRange(0, 100).Draw(t, "hours")) * time.Hour)
	require.NoError(t, os.Chtimes(path, at, at))
	m.caughtUp(t, path)
}

// quiet lets time pass, so that last lines without their end are read.
func (m *model) quiet(t *rapid.T) {
	m.clock.advance(lineWait + saveAfter)
	m.caughtUp(t)
	for _, path := range slices.Sorted(maps.Keys(m.files)) {
		m.imports(t, path, m.files[path].content)
	}
}

// restart stops a run and starts it, or the other one.
func (m *model) restart(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "run")
	if f := m.runs[i]; f != nil {
		f.stop(t)
	}
	m.runs[i] = nil
	if m.runs[1-i] == nil || rapid.Bool().Draw(t, "again") {
		m.start(t, i)
		m.caughtUp(t)
	}
}

// moveFolder removes the folder of all sessions, and brings it back.
func (m *model) moveFolder(t *rapid.T) {
	from, to := m.h.path(".claude"), m.h.path("moved")
	if len(m.files) == 0 {
		return
	}
	require.NoError(t, os.Rename(from, to))
	require.NoError(t, os.Rename(to, from))
	m.caughtUp(t, slices.Sorted(maps.Keys(m.files))...)
}

// shown is what a thread has.
type shown struct {
	Title, Active string
	Branches      map[string][]string
}

func threadsOf(t *rapid.T, store *lineage.Store) map[string]shown {
	ctx := context.Background()
	all := make(map[string]shown)
	for listed, err := range store.Threads(ctx, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		info := listed.Was
		if strings.HasPrefix(info.SourceID, "00000000-0000-0000-0000-") {
			continue
		}
		thread, err := store.Thread(ctx, info.ID)
		require.NoError(t, err)
		got := shown{Title: info.Title, Branches: make(map[string][]string)}
		branches, err := thread.Branches(ctx)
		require.NoError(t, err)
		for _, b := range branches {
			texts := []string{}
			for e, err := range store.History(ctx, b.Head, lineage.Window{}) {
				require.NoError(t, err)
				texts = append(texts, e.Excerpt())
			}
			got.Branches[b.Name] = texts
			if b.Active {
				got.Active = b.Name
			}
		}
		all[info.SourceID] = got
	}
	return all
}

// check compares the stores, and the files with their sources.
func (m *model) check(t *rapid.T) {
	m.quiet(t)
	for i, f := range m.runs {
		if f != nil {
			f.stop(t)
			m.runs[i] = nil
		}
	}
	m.start(t, 0) // what one run has left to the other is recorded
	m.clock.advance(lineWait + saveAfter)
	m.caughtUp(t)
	m.runs[0].stop(t)
	m.runs[0] = nil
	require.Equal(t, threadsOf(t, m.ref), threadsOf(t, m.store))
	for path, f := range m.files {
		s, err := FindSource(context.Background(), m.store, m.h.options().Machine.ID, path)
		if err != nil {
			require.ErrorIs(t, err, lineage.ErrNotFound)
			require.NotContains(t, f.content, `"uuid"`, path)
			continue
		}
		var out bytes.Buffer
		require.NoError(t, s.Export(context.Background(), &out), path)
		require.Equal(t, f.content, out.String(), path)
	}
}
