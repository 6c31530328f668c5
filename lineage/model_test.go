package lineage_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// model is the expected content of a store in its simplest form: every context has a copy of its
// whole history.
type model struct {
	contexts []*modelContext
	threads  []*modelThread
	spans    map[lineage.SpanRef][]step // the history that ends at each span ever added
	refs     []lineage.SpanRef          // the keys of spans, oldest first
	stored   []string                   // every body ever stored
	erased   map[string]bool
	places   int
}

type modelContext struct {
	id      lineage.ContextID
	parent  lineage.ContextID
	thread  lineage.ThreadID
	history []step
	moves   []modelMove
	offered bool // as an alternative, after base
	base    lineage.SpanRef
}

type modelMove struct {
	from, to lineage.SpanRef
	reason   string
}

// step is a span.
type step struct {
	ref  lineage.SpanRef
	says []modelUsage
}

// modelUsage is a usage.
type modelUsage struct {
	kind                       structure.UsageKind
	role, name, document, file string
	revision                   uint64
	text                       string
	// place identifies the original usage. Merges copy it; other operations create a new one.
	place  int
	merged bool
}

type modelThread struct {
	id          lineage.ThreadID
	title       string
	branches    []modelBranch     // oldest first
	checkpoints []modelCheckpoint // newest first
	active      lineage.ContextID
}

type modelBranch struct {
	name    string
	context lineage.ContextID
}

type modelCheckpoint struct {
	name string
	id   fmt.Stringer
	span lineage.SpanRef
}

func newModel() *model {
	return &model{spans: map[lineage.SpanRef][]step{{}: nil}, refs: []lineage.SpanRef{{}}, erased: make(map[string]bool)}
}

// tipOf returns the last span of a history.
func tipOf(history []step) lineage.SpanRef {
	if len(history) == 0 {
		return lineage.SpanRef{}
	}
	return history[len(history)-1].ref
}

func (c *modelContext) tip() lineage.SpanRef { return tipOf(c.history) }

// move replaces the history of a context by another one.
func (c *modelContext) move(to []step, reason string) {
	if c.tip() == tipOf(to) {
		return
	}
	c.moves = append(c.moves, modelMove{c.tip(), tipOf(to), reason})
	c.history = slices.Clone(to)
}

func (m *model) context(id lineage.ContextID) *modelContext {
	for _, c := range m.contexts {
		if c.id == id {
			return c
		}
	}
	return nil
}

// add creates a context with a copy of a history.
func (m *model) add(id lineage.ContextID, parent lineage.ContextID, thread lineage.ThreadID, history []step) *modelContext {
	c := &modelContext{id: id, parent: parent, thread: thread, history: slices.Clone(history)}
	m.contexts = append(m.contexts, c)
	return c
}

// grow adds spans to a context.
func (m *model) grow(c *modelContext, refs []lineage.SpanRef, says [][]modelUsage) {
	for i, ref := range refs {
		c.history = append(slices.Clone(c.history), step{ref, says[i]})
		if _, known := m.spans[ref]; !known {
			m.refs = append(m.refs, ref)
		}
		m.spans[ref] = slices.Clone(c.history)
	}
}

func (m *model) drop(gone func(*modelContext) bool) {
	m.contexts = slices.DeleteFunc(m.contexts, gone)
}

// isBranch reports whether a branch names the context.
func (m *model) isBranch(id lineage.ContextID) bool {
	for _, t := range m.threads {
		for _, b := range t.branches {
			if b.context == id {
				return true
			}
		}
	}
	return false
}

// noteStored records that bodies were stored.
func (m *model) noteStored(says ...modelUsage) {
	for _, u := range says {
		if !slices.Contains(m.stored, u.text) {
			m.stored = append(m.stored, u.text)
		}
		delete(m.erased, u.text)
	}
}

// asNew returns a usage as a new one, without the original's ids.
func (m *model) asNew(s modelUsage) modelUsage {
	if !s.merged {
		m.places++
		s.place = m.places
	}
	return s
}

// choose returns the usages of a history that a filter keeps, by span.
func (m *model) choose(history []step, keeps func(modelUsage) bool) [][]modelUsage {
	var chosen [][]modelUsage
	for _, s := range history {
		var says []modelUsage
		for _, u := range s.says {
			if keeps(u) {
				says = append(says, m.asNew(u))
			}
		}
		if len(says) > 0 {
			chosen = append(chosen, says)
		}
	}
	return chosen
}

// unmerged returns the usages of the source that a merge adds to the target.
func unmerged(target, source []step) (added [][]modelUsage) {
	shared := 0
	for shared < min(len(target), len(source)) && target[shared].ref == source[shared].ref {
		shared++
	}
	has := make(map[int]bool)
	for _, s := range target[shared:] {
		for _, u := range s.says {
			has[u.place] = true
		}
	}
	for _, s := range source[shared:] {
		var says []modelUsage
		for _, u := range s.says {
			if !has[u.place] {
				u.merged = true
				says = append(says, u)
			}
		}
		if len(says) > 0 {
			added = append(added, says)
		}
	}
	return added
}

// wordingOf returns a text that is equal for equal steps.
func wordingOf(s step) string {
	var b strings.Builder
	for _, u := range s.says {
		fmt.Fprintf(&b, "%v %q %q %q %d %q %v;", u.kind, u.role, u.name, u.document, u.revision, u.file, content.Sum([]byte(u.text)))
	}
	return b.String()
}

// commonPrefix returns how many equal steps two histories have at their start.
func commonPrefix(a, b []step) int {
	n := 0
	for n < min(len(a), len(b)) && wordingOf(a[n]) == wordingOf(b[n]) {
		n++
	}
	return n
}

// window returns the part of a history that a window selects.
func window(history []step, w lineage.Window) []step {
	from, to := max(int(w.From), 1), len(history)
	if w.To != 0 {
		to = min(to, int(w.To))
	}
	if w.Last != 0 {
		from = max(from, to-int(w.Last)+1)
	}
	if from > to {
		return nil
	}
	return history[from-1 : to]
}

func (t *modelThread) branch(name string) *modelBranch {
	for i := range t.branches {
		if t.branches[i].name == name {
			return &t.branches[i]
		}
	}
	return nil
}

// automaticName returns the automatic name of the next branch created from the active one.
func (t *modelThread) automaticName() string {
	current, count := "", 0
	for _, b := range t.branches {
		if b.context == t.active {
			current = b.name
		}
	}
	for _, b := range t.branches {
		if b.name == current || strings.HasPrefix(b.name, current+"-v") {
			count++
		}
	}
	name := fmt.Sprintf("%s-v%d", current, count+1)
	for n := count + 2; t.branch(name) != nil; n++ {
		name = fmt.Sprintf("%s-v%d", current, n)
	}
	return name
}
