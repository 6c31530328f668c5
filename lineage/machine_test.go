package lineage_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// A machine applies the same operations to a store and to a model.
type machine struct {
	*model
	s     *lineage.Store
	dir   string // empty for a store in memory
	clock func() time.Time
	// returned are the contexts that have returned a result, with their tips.
	returned map[string]bool
}

// limits keep histories short, so that all can be compared after each step.
const (
	maxContexts = 10
	maxThreads  = 3
)

// largeText is cut into chunks.
var largeText = strings.Repeat("large ", content.InlineLimit/6+1000)

func newMachine(t *rapid.T) *machine {
	dir, err := os.MkdirTemp("", "lineage")
	require.NoError(t, err)
	m := &machine{model: newModel(), dir: dir, clock: ticking(), returned: make(map[string]bool)}
	m.open(t)
	return m
}

// newMachineInMemory returns a machine that cannot be reopened.
func newMachineInMemory(t *rapid.T) *machine {
	m := &machine{model: newModel(), clock: ticking(), returned: make(map[string]bool)}
	m.open(t)
	return m
}

func (m *machine) open(t *rapid.T) {
	var err error
	o := lineage.Options{Durability: lineage.Normal, Now: m.clock}
	if m.dir == "" {
		m.s, err = lineage.OpenMemory(bg, o)
	} else {
		m.s, err = lineage.Open(bg, m.dir, o)
	}
	require.NoError(t, err)
}

func (m *machine) reopen(t *rapid.T) {
	require.NoError(t, m.s.Close())
	m.open(t)
}

// close ends the store and removes it.
func (m *machine) close(t *rapid.T) {
	requireSound(t, m.s)
	m.discard(t)
}

func (m *machine) discard(t *rapid.T) {
	require.NoError(t, m.s.Close())
	if m.dir != "" {
		require.NoError(t, os.RemoveAll(m.dir))
	}
}

// TestModel applies random operations and compares everything after each.
func TestModel(t *testing.T) {
	for name, newMachine := range map[string]func(*rapid.T) *machine{"on disk": newMachine, "in memory": newMachineInMemory} {
		t.Run(name, func(t *testing.T) { testModel(t, newMachine) })
	}
}

func testModel(t *testing.T, newMachine func(*rapid.T) *machine) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer m.close(t)
		actions := m.actions()
		actions[""] = m.check
		t.Repeat(actions)
		other := newMachine(t)
		defer other.discard(t)
		m.checkCopies(t, other.s)
	})
}

// TestModelReopened reopens the store after each operation, so that the comparison reads what was
// written.
func TestModelReopened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer m.close(t)
		actions := m.actions()
		actions[""] = func(t *rapid.T) {
			m.reopen(t)
			m.check(t)
		}
		t.Repeat(actions)
	})
}

// TestForkReopenCompare forks histories, reopens the store and compares the forks with their
// parents.
func TestForkReopenCompare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		defer m.close(t)
		m.newContext(t)
		grown := rapid.IntRange(1, 20).Draw(t, "grown")
		for range grown {
			m.extend(t)
			if len(m.contexts) < maxContexts && rapid.IntRange(0, 3).Draw(t, "fork?") == 0 {
				m.fork(t)
			}
		}
		digests := make(map[lineage.ContextID]structure.Digest)
		for _, c := range m.contexts {
			var err error
			digests[c.id], err = m.handle(t, c).Digest(bg)
			require.NoError(t, err)
		}
		m.reopen(t)
		m.check(t)
		for _, c := range m.contexts {
			digest, err := m.handle(t, c).Digest(bg)
			require.NoError(t, err)
			require.Equal(t, digests[c.id], digest)
		}
	})
}

func (m *machine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"new context": m.newContext, "extend": m.extend, "extend from": m.extendFrom, "extend together": m.extendTogether,
		"fork": m.fork, "fork empty": m.forkEmpty, "subset": m.subset, "return": m.giveBack,
		"send": m.send, "say": m.say, "alternatives": m.alternatives, "choose": m.chooseOne,
		"edit": m.edit, "merge": m.merge, "replace": m.replace, "move": m.moveTo, "back": m.back,
		"undo": m.undo, "delete context": m.deleteContext, "put": m.put, "erase": m.erase,
		"create thread": m.createThread, "update thread": m.updateThread, "delete thread": m.deleteThread,
		"create branch": m.createBranch, "thread rewind": m.rewindThread, "aside": m.aside, "switch": m.switchBranch,
		"name branch": m.nameBranch, "rename branch": m.renameBranch, "delete branch": m.deleteBranch,
		"checkpoint": m.checkpoint, "restore": m.restore, "delete checkpoint": m.deleteCheckpoint,
	}
}

// pick draws a context. Without any, the action is skipped.
func (m *machine) pick(t *rapid.T, label string) *modelContext {
	if len(m.contexts) == 0 {
		t.Skip("no context")
	}
	return m.contexts[rapid.IntRange(0, len(m.contexts)-1).Draw(t, label)]
}

func (m *machine) pickThread(t *rapid.T) *modelThread {
	if len(m.threads) == 0 {
		t.Skip("no thread")
	}
	return m.threads[rapid.IntRange(0, len(m.threads)-1).Draw(t, "thread")]
}

// pickRef draws any span that was ever added, or the zero ref.
func (m *machine) pickRef(t *rapid.T) lineage.SpanRef {
	return m.refs[rapid.IntRange(0, len(m.refs)-1).Draw(t, "span")]
}

// mayAdd skips actions that would create too many contexts to compare.
func (m *machine) mayAdd(t *rapid.T, n int) {
	if len(m.contexts)+n > maxContexts {
		t.Skip("enough contexts")
	}
}

func (m *machine) handle(t *rapid.T, c *modelContext) *lineage.Context {
	h, err := m.s.Context(bg, c.id)
	require.NoError(t, err)
	return h
}

func (m *machine) thread(t *rapid.T, thread *modelThread) *lineage.Thread {
	h, err := m.s.Thread(bg, thread.id)
	require.NoError(t, err)
	return h
}

// word draws a text from so few words that texts repeat.
func word(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "a longer word", "", "á\x00\xff", largeText}).Draw(t, "word")
}

// newSaid draws a usage of new content.
func (m *machine) newSaid(t *rapid.T) modelUsage {
	m.places++
	u := modelUsage{kind: lineage.Message, text: word(t), place: m.places}
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		u.kind, u.document, u.revision = lineage.Document, fmt.Sprint("plan ", m.places), rapid.Uint64Range(1, 3).Draw(t, "revision")
	case 1:
		u.kind, u.file = lineage.Asset, "photo.png"
	case 2:
		u.role, u.name = "tool", "search"
	default:
		u.role = rapid.SampledFrom([]string{"user", "assistant"}).Draw(t, "role")
		u.name = u.role
	}
	return u
}

func (m *machine) newSays(t *rapid.T) []modelUsage {
	says := make([]modelUsage, rapid.IntRange(1, 3).Draw(t, "count"))
	for i := range says {
		says[i] = m.newSaid(t)
	}
	return says
}

// itemsOf returns items that add the usages to a store.
func itemsOf(says []modelUsage) []lineage.Item {
	items := make([]lineage.Item, len(says))
	for i, u := range says {
		items[i] = lineage.Item{
			Kind: u.kind, Role: u.role, Name: u.name, Document: u.document, Revision: u.revision,
			Filename: u.file, Body: []byte(u.text),
		}
	}
	return items
}

// oneEach puts each usage into a span of its own.
func oneEach(says []modelUsage) [][]modelUsage {
	steps := make([][]modelUsage, len(says))
	for i := range says {
		steps[i] = says[i : i+1]
	}
	return steps
}

// adopt adds a context of the store to the model. It requires the given history, followed by new
// spans with the given content.
func (m *machine) adopt(t *rapid.T, h *lineage.Context, parent *modelContext, history []step, says [][]modelUsage) *modelContext {
	c := m.add(h.ID(), parent.id, parent.thread, history)
	var refs []lineage.SpanRef
	for e, err := range h.Entries(bg, lineage.Window{From: uint64(len(history) + 1)}) {
		require.NoError(t, err)
		if e.Index == 0 {
			refs = append(refs, e.Span)
		}
	}
	require.Len(t, refs, len(says))
	m.grow(c, refs, says)
	return c
}
