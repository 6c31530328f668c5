package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

var bg = context.Background()

// sessionFile is a file whose messages are in a store.
type sessionFile struct {
	t      require.TestingT
	store  *lineage.Store
	main   *lineage.Context
	thread *lineage.Thread
	id     string
	lines  []importer.Line
	raw    []byte
}

func newSessionFile(t require.TestingT, store *lineage.Store, id string) *sessionFile {
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{SourceID: id})
	require.NoError(t, err)
	main, err := thread.Active(bg)
	require.NoError(t, err)
	return &sessionFile{t: t, store: store, main: main, thread: thread, id: id}
}

// say adds a line with a message.
func (f *sessionFile) say(text string) {
	i := len(f.lines)
	n := &archive.Node{
		ID: fmt.Sprintf("m%d", i), Role: "user", Type: content.TypeJSON, Body: fmt.Appendf(nil, `{"role":"user","content":%q}`, text),
		Metadata: fmt.Appendf(nil, `{"cwd":"/home","toolUseResult":{"stdout":%q}}`, text+"!"), Created: time.UnixMilli(1770000000000 + int64(i)).UTC(),
	}
	spans, err := f.main.Extend(bg, lineage.Item{
		Kind: lineage.Message, Role: n.Role, Type: n.Type, Body: n.Body, Metadata: n.Metadata, SourceID: n.ID, CreatedAt: n.Created,
	})
	require.NoError(f.t, err)
	raw := fmt.Sprintf("{\"sessionId\":%q,\"cwd\":\"/home\",\"uuid\":%q,\"timestamp\":%q,\"message\":%s,\"toolUseResult\":{\"stdout\":%q}}\n",
		f.id, n.ID, n.Created.Format("2006-01-02T15:04:05.000Z"), n.Body, text+"!")
	f.line(raw, importer.PlacedNode{Node: n, Span: spans[0]})
}

func (f *sessionFile) line(raw string, nodes ...importer.PlacedNode) {
	f.lines = append(f.lines, importer.Line{RawLine: archive.RawLine{Number: int64(len(f.lines) + 1), Raw: []byte(raw)}, Nodes: nodes})
	f.raw = append(f.raw, raw...)
}

const machine = "0123"

// recorded records the lines from one on.
func (f *sessionFile) recorded(known *Source) (*recorder, []importer.Line) {
	sum := sha256.New()
	lines := f.lines
	if known != nil {
		sum.Write(f.raw[:known.Recorded.Bytes])
		lines = lines[known.Recorded.Lines:]
	}
	return record(f.store, Machine{ID: machine, Secret: "s"}, SourceOf{Machine: machine, Agent: "claude-code", Path: "/home/" + f.id}, known, sum), lines
}

func (f *sessionFile) record(known *Source) error {
	r, lines := f.recorded(known)
	r.add(bg, f.id, lineage.ThreadID{}, lines)
	return r.flush(bg)
}

func (f *sessionFile) source() *Source {
	s, err := FindSource(bg, f.store, machine, "/home/"+f.id)
	require.NoError(f.t, err)
	return s
}

func (f *sessionFile) requireExact() {
	s := f.source()
	var out bytes.Buffer
	require.NoError(f.t, s.Export(bg, &out))
	require.Equal(f.t, string(f.raw[:s.Recorded.Bytes]), out.String())
	spans, err := s.Spans(bg)
	require.NoError(f.t, err)
	require.EqualValues(f.t, s.Recorded.Lines, len(spans))
	for i, of := range spans {
		require.Len(f.t, of, len(f.lines[i].Nodes))
		for k := range of {
			require.Equal(f.t, f.lines[i].Nodes[k].Span, of[k])
		}
	}
}

// A file comes back as it was last read, however its lines were recorded, and whatever they are.
func TestAnySource(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, err := lineage.OpenMemory(bg, lineage.Options{})
		require.NoError(t, err)
		defer store.Close()
		f := newSessionFile(t, store, "s1")
		grow := func() {
			for range rapid.IntRange(0, 8).Draw(t, "lines") {
				text := rapid.SampledFrom([]string{"a", "hello\nworld", "\u2028", ""}).Draw(t, "text")
				switch rapid.IntRange(0, 5).Draw(t, "kind") {
				case 0:
					f.line(text + "\r\n")
				case 1:
					f.line(fmt.Sprintf("{\"type\":\"other\",\"data\":{\"said\":%q}}\n", text))
				case 2:
					f.line("\xff broken\n")
				default:
					f.say(text)
				}
			}
		}
		grow()
		require.NoError(t, f.record(nil))
		for range rapid.IntRange(0, 5).Draw(t, "rounds") {
			if len(f.lines) > 0 {
				f.requireExact()
			}
			grow()
			var known *Source
			if rapid.IntRange(0, 3).Draw(t, "again from the start") > 0 {
				if known, err = FindSource(bg, store, machine, "/home/s1"); err != nil {
					require.ErrorIs(t, err, lineage.ErrNotFound)
				}
			}
			require.NoError(t, f.record(known))
		}
		if len(f.lines) > 0 {
			f.requireExact()
		}
	})
}

// A copy with another session id costs next to nothing.
func TestCopiedSource(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	f := newSessionFile(t, store, "s1")
	for i := range 3000 {
		f.say(fmt.Sprint("text ", i))
	}
	require.NoError(t, f.record(nil))
	f.requireExact()
	before, err := store.Stats(bg)
	require.NoError(t, err)
	copied := newSessionFile(t, store, "s2")
	for _, l := range f.lines {
		copied.line(strings.ReplaceAll(string(l.Raw), `"s1"`, `"s2"`), l.Nodes...)
	}
	require.NoError(t, copied.record(nil))
	copied.requireExact()
	after, err := store.Stats(bg)
	require.NoError(t, err)
	require.Equal(t, before.Blocks, after.Blocks)
	require.LessOrEqual(t, after.Spans-before.Spans, uint64(3))
}

// Of two that record one file at once, the slower one is told.
func TestTwoRecorders(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	f := newSessionFile(t, store, "s1")
	f.say("one")
	require.NoError(t, f.record(nil))
	was := f.source()
	f.say("two")
	require.NoError(t, f.record(was))
	f.say("three")
	require.ErrorIs(t, f.record(was), lineage.ErrTipMoved)
	f.requireExact()
	require.NoError(t, f.record(f.source()))
	f.requireExact()
	require.EqualValues(t, 3, f.source().Recorded.Lines)
	all := 0
	for s, err := range Sources(bg, store) {
		require.NoError(t, err)
		require.Equal(t, f.source().Recorded, s.Recorded)
		all++
	}
	require.Equal(t, 1, all)
}

// What was erased or deleted is said, and never given back in another way.
func TestSourceOfErased(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	f := newSessionFile(t, store, "s1")
	f.say("keep")
	f.say("secret")
	f.line("{\"type\":\"other\",\"text\":\"secret\"}\n")
	require.NoError(t, f.record(nil))
	entries, err := store.Span(bg, f.lines[1].Nodes[0].Span)
	require.NoError(t, err)
	for _, e := range entries {
		for _, id := range e.Contents() {
			require.NoError(t, store.Erase(bg, id))
		}
		if !e.MetadataContent.IsZero() {
			require.NoError(t, store.Erase(bg, e.MetadataContent))
		}
	}
	var out bytes.Buffer
	require.ErrorIs(t, f.source().Export(bg, &out), lineage.ErrErased)
	require.NotContains(t, out.String(), "secret")
	for c, err := range store.Contexts(bg) { // the line that was kept whole lost it, too
		require.NoError(t, err)
		for e, err := range c.Entries(bg, lineage.Window{}) {
			require.NoError(t, err)
			require.NotContains(t, string(e.Body), "secret")
		}
	}
	require.NoError(t, f.thread.Delete(bg))
	require.ErrorIs(t, f.source().Export(bg, &bytes.Buffer{}), lineage.ErrNotFound)
	_, err = store.Collect(bg, lineage.CollectOptions{})
	require.NoError(t, err)
	require.ErrorIs(t, f.source().Export(bg, &bytes.Buffer{}), lineage.ErrNotFound)
}

// A file that is of use as a whole only, and is too large for one commit, is recorded when all of it is: before, the source is as
// it was, also if it goes on after what it had.
func TestLargeWholeSource(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	f := newSessionFile(t, store, "s1")
	large := strings.Repeat("text ", flushSize/5/2)
	for i := range 5 {
		f.line(fmt.Sprint(i, large, "\n"))
	}
	recorder := func() *recorder {
		known, err := FindSource(bg, store, machine, "/home/s1")
		if err != nil {
			require.ErrorIs(t, err, lineage.ErrNotFound)
			known = nil
		}
		r, _ := f.recorded(known)
		r.seen, r.whole = true, true
		return r
	}
	killed := recorder() // it does not get to the end
	killed.add(bg, f.id, lineage.ThreadID{}, f.lines[:4])
	require.NoError(t, killed.err)
	require.NotNil(t, killed.staged)
	_, err := FindSource(bg, store, machine, "/home/s1")
	require.ErrorIs(t, err, lineage.ErrNotFound)
	for s := range Sources(bg, store) {
		t.Fatal(s.About.Path)
	}
	r := recorder()
	r.add(bg, f.id, lineage.ThreadID{}, f.lines)
	require.NoError(t, r.flush(bg))
	f.requireExact()
	require.EqualValues(t, 5, f.source().Recorded.Lines)
	require.True(t, isOvertaken(killed.flush(bg)))

	for i := range 5 {
		f.line(fmt.Sprint(i, " more ", large, "\n"))
	}
	killed = recorder()
	killed.add(bg, f.id, lineage.ThreadID{}, f.lines[5:9])
	require.NotNil(t, killed.staged)
	f.requireExact()
	require.EqualValues(t, 5, f.source().Recorded.Lines)
	r = recorder()
	r.add(bg, f.id, lineage.ThreadID{}, f.lines[5:])
	f.requireExact()
	require.NoError(t, r.flush(bg))
	f.requireExact()
	require.EqualValues(t, 10, f.source().Recorded.Lines)
}

// A file that was rewritten, and is too large for one commit, replaces what was recorded only when all of it is.
func TestLargeRewrittenSource(t *testing.T) {
	store := lineagetest.New(t, lineage.Options{})
	f := newSessionFile(t, store, "s1")
	f.say("one")
	require.NoError(t, f.record(nil))
	before := string(f.raw)
	export := func() string {
		var out bytes.Buffer
		require.NoError(t, f.source().Export(bg, &out))
		return out.String()
	}
	contexts := func() (n int) {
		for _, err := range store.Contexts(bg) {
			require.NoError(t, err)
			n++
		}
		return n
	}
	had := contexts()
	f.lines, f.raw = nil, nil
	large := strings.Repeat("text ", flushSize/5/2)
	for i := range 5 {
		f.line(fmt.Sprint(i, large, "\n"))
	}
	again := func() (r *recorder) {
		was := f.source()
		r, _ = f.recorded(nil)
		r.seen, r.was = true, was.tip
		return r
	}
	killed := again() // it does not get to the end
	killed.add(bg, f.id, lineage.ThreadID{}, f.lines[:4])
	require.NoError(t, killed.err)
	require.NotNil(t, killed.staged)
	require.Equal(t, before, export())

	r := again()
	r.add(bg, f.id, lineage.ThreadID{}, f.lines)
	require.True(t, r.pending())
	require.Equal(t, before, export())
	require.NoError(t, r.flush(bg))
	require.False(t, r.pending())
	require.Equal(t, string(f.raw), export())
	require.Equal(t, had, contexts())
	f.line("more\n")
	r.add(bg, f.id, lineage.ThreadID{}, f.lines[5:])
	require.NoError(t, r.flush(bg))
	f.requireExact()
	require.True(t, isOvertaken(killed.flush(bg)))
	f.requireExact()
}
