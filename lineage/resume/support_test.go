package resume_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/lineagetest"
	"github.com/lineage-store/lineage/lineage/resume"
)

var bg = context.Background()

const samples = "../archive/testdata/"

// home is a home directory with agents, and a store that follows them.
type home struct {
	t           *testing.T
	dir, work   string
	store       *lineage.Store
	environment *follow.Environment
	machine     follow.Machine
	first       string // the agent that is tried
	url         string // of the model, for an agent that has it from its environment
}

func newHome(t *testing.T) *home {
	// The real name, as agents see it.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return homeIn(t, dir)
}

// homeIn returns a home in a directory, with a store of its own.
func homeIn(t *testing.T, dir string) *home {
	h := &home{t: t, dir: dir, work: filepath.Join(dir, "my work"), store: lineagetest.New(t, lineage.Options{})}
	require.NoError(t, os.MkdirAll(h.work, 0o755))
	var err error
	h.environment, err = follow.NewEnvironment(func(name string) string {
		if name == "HOME" || name == "USERPROFILE" {
			return h.dir
		}
		return ""
	})
	require.NoError(t, err)
	h.machine = follow.Machine{ID: strings.Repeat("1", 32), Name: "here", Secret: "only here"}
	return h
}

// agent returns an agent by its name.
func agent(t *testing.T, name string) follow.Agent {
	for _, a := range follow.Agents() {
		if a.Name == name {
			return a
		}
	}
	require.Fail(t, "no agent "+name)
	return follow.Agent{}
}

// put writes a session file of an agent.
func (h *home) put(name, path string, content []byte) {
	file := filepath.Join(agent(h.t, name).Folder(h.environment), filepath.FromSlash(path))
	require.NoError(h.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(h.t, os.WriteFile(file, content, 0o600))
}

// sample puts a sample of an agent.
func (h *home) sample(name, path, sample string) []byte {
	raw, err := os.ReadFile(samples + sample)
	require.NoError(h.t, err)
	h.put(name, path, raw)
	return raw
}

// follow reads what is new.
func (h *home) follow() {
	require.NoError(h.t, follow.Run(bg, h.store, follow.Options{Once: true, Environment: h.environment, Machine: h.machine}))
}

// thread returns the thread of a session.
func (h *home) thread(session string) *lineage.Thread {
	thread, err := h.store.FindThread(bg, session)
	require.NoError(h.t, err)
	return thread
}

// tip returns the end of the active branch of a thread.
func (h *home) tip(thread *lineage.Thread) lineage.SpanRef {
	active, err := thread.Active(bg)
	require.NoError(h.t, err)
	tip, err := active.Tip(bg)
	require.NoError(h.t, err)
	return tip
}

// spans returns the spans of a history.
func (h *home) spans(tip lineage.SpanRef) (spans []lineage.SpanRef) {
	for e, err := range h.store.History(bg, tip, lineage.Window{}) {
		require.NoError(h.t, err)
		if n := len(spans); n == 0 || spans[n-1] != e.Span {
			spans = append(spans, e.Span)
		}
	}
	return spans
}

// plan makes a session.
func (h *home) plan(name string, thread *lineage.Thread, tip lineage.SpanRef) *resume.Session {
	s, err := resume.New(bg, h.store, tip, resume.Options{Agent: name, Thread: thread.ID(), Dir: h.work, Environment: h.environment})
	require.NoError(h.t, err)
	return s
}

// write writes a session, and returns its lines.
func (h *home) write(s *resume.Session) [][]byte {
	_, err := s.Write(bg)
	require.NoError(h.t, err)
	raw, err := os.ReadFile(s.File())
	require.NoError(h.t, err)
	require.True(h.t, bytes.HasSuffix(raw, []byte("\n")))
	return bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
}

// imported imports an archive, and returns the threads.
func (h *home) imported(path string) []*lineage.Thread {
	_, err := importer.Import(bg, h.store, archive.Path(samples+path), importer.Options{})
	require.NoError(h.t, err)
	return h.threads()
}

// threads returns all threads.
func (h *home) threads() (threads []*lineage.Thread) {
	for listed, err := range h.store.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(h.t, err)
		threads = append(threads, listed.Thread)
	}
	return threads
}

// tips returns the ends of the branches of a thread.
func (h *home) tips(thread *lineage.Thread) (tips []lineage.SpanRef) {
	branches, err := thread.Branches(bg)
	require.NoError(h.t, err)
	for _, b := range branches {
		c, err := h.store.Context(bg, b.Context)
		require.NoError(h.t, err)
		tip, err := c.Tip(bg)
		require.NoError(h.t, err)
		tips = append(tips, tip)
	}
	return tips
}

// texts returns what the messages of a history say.
func (h *home) texts(tip lineage.SpanRef) (texts []string) {
	for e, err := range h.store.History(bg, tip, lineage.Window{}) {
		require.NoError(h.t, err)
		body, err := h.store.Original(bg, e)
		require.NoError(h.t, err)
		for _, m := range e.Messages(body) {
			texts = append(texts, m.String())
		}
	}
	return texts
}

func TestMain(m *testing.M) {
	campaign.Checks(10) // each opens a store and follows files
	os.Exit(m.Run())
}
