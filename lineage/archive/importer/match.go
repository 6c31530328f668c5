package importer

import (
	"context"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// matching gives each head a context: one that points to its message, else one that points to an earlier message and is
// advanced, else a new one. needsContext names the heads that get none.
type matching struct {
	*loading
	ctx   context.Context
	store backend.Reader
	// created are the new contexts by their branch names, and heads the named heads by theirs.
	created map[string]*contextState
	heads   map[string]*head
	// pointed are the points that have a context; equal histories share it.
	pointed map[point]bool
	// unwalked are, by aside, the nodes of heads that have claimed a context and whose histories were not walked yet.
	unwalked map[int32][]int32
	// keepsActive is set if the thread's active context stays, whatever message is current in the archive.
	keepsActive bool
	// implied is set if the archive does not state the current message, so that it is the last one read so far of an
	// input that grows. If the store has messages after it, another reader has read more of the input, and its head
	// stays.
	implied bool
}

// match has each head claim the context that it belongs to, and then moves the contexts, or creates missing ones. Heads with a
// name come to the branches of that name.
func (l *loader) match(st *loading, state backend.Reader, heads []head, keepsActive bool) error {
	st.round++
	m := matching{
		loading: st, ctx: l.ctx, store: state, created: make(map[string]*contextState), heads: make(map[string]*head),
		pointed: make(map[point]bool), unwalked: make(map[int32][]int32),
		keepsActive: keepsActive, implied: st.header.Current == "" && (st.round > 1 || l.grows),
	}
	for _, c := range st.thread.contexts {
		if c.branch != "" {
			m.created[c.branch] = c
		}
	}
	for i := range heads {
		if m.claim(&heads[i]); heads[i].name != "" {
			m.heads[heads[i].name] = &heads[i]
		}
	}
	for i := range heads {
		if err := m.advance(&heads[i]); err != nil {
			return err
		}
	}
	m.addEmpty()
	return nil
}

// named returns the context of a branch, nil if there is no such branch.
func (m *matching) named(name string) *contextState {
	if c := m.created[name]; c != nil || m.thread.outline == nil {
		return c
	}
	if c := m.thread.outline.branches[name]; c != nil {
		return m.thread.state(c)
	}
	return nil
}

// names returns the number of branches.
func (m *matching) names() int {
	if m.thread.outline == nil {
		return len(m.created)
	}
	return len(m.created) + len(m.thread.outline.branches)
}

// claim gives a head the context of its branch, or for a head without a name one that points to its message.
func (m *matching) claim(h *head) {
	named := m.named(h.name)
	if named != nil {
		named.rename(h.metadata)
	}
	at := m.pointOf(h.node, h)
	switch {
	case h.name == "":
		if !m.pointed[at] {
			h.context = m.free(at)
		}
	case named != nil && !named.Tip.IsZero() && !m.follows(h.node, named.Tip):
		h.name = "" // the branch was continued in the store and stays
	default:
		h.context = named
	}
	if h.context != nil {
		h.context.taken, m.pointed[at] = true, true
	}
}

// advance gives a head the context that it needs, and moves the context to the head's message.
func (m *matching) advance(h *head) error {
	if h.done {
		return nil
	}
	h.done = true
	if parent := m.heads[h.parent]; parent != nil {
		if err := m.advance(parent); err != nil {
			return err
		}
	}
	n := m.nodes.at(h.node)
	if h.context == nil {
		if needed, err := m.needsContext(h); !needed || err != nil {
			return err
		}
		h.context = m.take(h)
	} else {
		if !h.context.stored {
			h.context.Metadata = h.metadata
		}
		m.unwalked[n.aside] = append(m.unwalked[n.aside], h.node)
	}
	h.context.moveTo(m.ref(n))
	return nil
}

// needsContext reports whether a head that has claimed no context gets one. A head with a name does. Another does not if a
// history that ends at its message has a context already, or if a history of the thread continues after its message. The
// current one does nevertheless if its context becomes active.
func (m *matching) needsContext(h *head) (bool, error) {
	if h.name != "" {
		return true, nil
	}
	at := m.pointOf(h.node, h)
	if m.pointed[at] && !h.current {
		return false, nil
	}
	if h.current && !m.keepsActive && !m.implied {
		return true, nil
	}
	inner, err := m.thread.outline.continues(m.ctx, m.store, at.at)
	return !inner, err
}

// take returns the context for a head that has claimed none. Without a name it is a free context that points to an earlier
// message, or the main branch if that is empty. Otherwise it is a new one, which forks where the history meets others.
func (m *matching) take(h *head) *contextState {
	at := m.pointOf(h.node, h)
	m.pointed[at] = true
	aside := m.nodes.at(h.node).aside
	for _, node := range m.unwalked[aside] {
		m.walk(node, nil)
	}
	delete(m.unwalked, aside)
	var free *contextState
	fork := m.walk(h.node, func(node int32) bool {
		free = m.free(m.pointOf(node, h))
		return free != nil
	})
	var c *contextState
	switch main := m.named(lineage.MainBranch); {
	case h.name == "" && free != nil:
		c = free
	case h.name == "" && at.aside == "" && main != nil && main.Tip.IsZero() && !main.taken:
		if c = main; !main.stored {
			main.At = fork
		}
	default:
		c = m.newContext(h, at.aside, fork)
	}
	c.taken = true
	return c
}

// pointOf returns the point of a message in the aside of a head.
func (m *matching) pointOf(node int32, h *head) point {
	return point{m.refOf(node), m.asides[m.nodes.at(h.node).aside]}
}

// free returns a context that points to a message and has no head yet.
func (m *matching) free(at point) *contextState {
	if m.thread.outline == nil {
		return nil
	}
	for _, known := range m.thread.outline.at[at] {
		if c := m.thread.state(known); !c.taken {
			return c
		}
	}
	return nil
}

// walk visits a node and its ancestors. It stops at a node that was visited before or is in another aside, or when
// found returns true, and returns the span there.
func (m *matching) walk(node int32, found func(node int32) bool) structure.SpanRef {
	for aside := m.nodes.at(node).aside; node >= 0; node = m.nodes.at(node).parent {
		n := m.nodes.at(node)
		if n.visited == m.round || n.aside != aside {
			return m.ref(n)
		}
		if found != nil && (found(node) || n.foreign || n.adopted) {
			return m.ref(n)
		}
		m.nodes.visit(node, m.round)
	}
	return structure.SpanRef{}
}

// newContext creates a context for a head.
func (m *matching) newContext(h *head, aside string, fork structure.SpanRef) *contextState {
	t, n := m.thread, m.nodes.at(h.node)
	c := &contextState{
		Context: write.Context{
			ID: structure.NewID[structure.ContextID](), Thread: t.record.ID, Parent: t.main, At: fork, CreatedAt: time.UnixMilli(n.created).UTC(),
		},
		aside: aside, dirty: true,
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = t.record.CreatedAt
	}
	if from := m.named(h.parent); from != nil {
		c.Parent = from.ID
	}
	run := m.ref(n).Run
	if held, ok := t.held[run]; ok && held.Parent == c.Parent && held.Base == c.At {
		c.ID, t.reused[held.ID] = held.ID, true
		delete(t.held, run)
	}
	if aside != "" {
		c.Metadata = asideMetadata(aside)
	} else {
		c.branch, c.Metadata = h.name, h.metadata
		for n := m.names() + 1; c.branch == ""; n++ {
			if name := lineage.MainBranch + "-v" + strconv.Itoa(n); m.named(name) == nil {
				c.branch = name
			}
		}
		m.created[c.branch] = c
		if c.branch == lineage.MainBranch {
			t.main = c.ID
		}
	}
	t.contexts = append(t.contexts, c)
	return c
}

// addEmpty creates the branches without messages that the thread does not have yet.
func (m *matching) addEmpty() {
	for _, b := range m.header.Empty {
		c := m.named(b.Name)
		if c == nil {
			from := m.thread.main
			if origin := m.named(b.Of); origin != nil {
				from = origin.ID
			}
			c = &contextState{
				Context: write.Context{
					ID: structure.NewID[structure.ContextID](), Thread: m.thread.record.ID, Parent: from, CreatedAt: m.thread.record.CreatedAt,
				},
				branch: b.Name,
			}
			m.created[b.Name] = c
			m.thread.contexts = append(m.thread.contexts, c)
		}
		if !c.stored && c.Tip.IsZero() {
			c.Metadata = b.Metadata
		}
		c.rename(b.Metadata)
	}
}

// renamedFrom is a key in the metadata of a branch that was renamed in the store. Its value is the name in the
// archive.
const renamedFrom = "renamedFrom"

// rename gives a branch in the store the archive's metadata, if the name there is new and was changed later.
func (c *contextState) rename(metadata []byte) {
	if c.was == nil || !rawjson.IsObject(metadata) || !rawjson.Valid(c.was.Metadata) || !rawjson.IsObject(c.was.Metadata) {
		return
	}
	was := c.was.Metadata
	name := rawjson.Str(rawjson.Get(metadata, "name"))
	if name == "" || name == rawjson.Str(rawjson.Get(was, "name")) || name == rawjson.Str(rawjson.Get(was, renamedFrom)) ||
		!archive.ParseTime(rawjson.Get(metadata, "updatedAt")).After(archive.ParseTime(rawjson.Get(was, "updatedAt"))) {
		return
	}
	c.metadata = rawjson.MergePatch(rawjson.Remove(was, renamedFrom), metadata)
}
