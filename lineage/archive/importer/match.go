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

// matching assigns a context to each head: one that points to its message, else one that points to an earlier message
// and is advanced, else a new one. No context is created for a leaf that a history of the thread continues, nor for a
// current node that is not to become current.
type matching struct {
	*loading
	ctx   context.Context
	store backend.Reader
	// created are the new contexts by their branch names.
	created  map[string]*contextState
	branches map[string]*head
	done     map[point]bool    // points that have a context; equal histories share it
	claimed  map[int32][]int32 // by aside, the nodes of claimed heads whose histories were not walked yet
	// implied is set if the archive does not state the current message, so that it is the last one read so far of an
	// input that grows. If the store has messages after it, another reader has read more of the input, and its head
	// stays.
	implied bool
}

// match has each head claim the context that it belongs to, and then moves the contexts, or creates missing ones. Heads with a
// name come to the branches of that name. With stays, the current head gets no context of its own if the store continues after
// it.
func (l *loader) match(st *loading, state backend.Reader, heads []head, stays bool) error {
	st.round++
	m := matching{
		loading: st, ctx: l.ctx, store: state, created: make(map[string]*contextState),
		branches: make(map[string]*head), done: make(map[point]bool), claimed: make(map[int32][]int32),
		implied: st.header.Current == "" && (st.round > 1 || l.grows),
	}
	for _, c := range st.thread.contexts {
		if c.branch != "" {
			m.created[c.branch] = c
		}
	}
	for i := range heads {
		if m.claim(&heads[i]); heads[i].name != "" {
			m.branches[heads[i].name] = &heads[i]
		}
	}
	for i := range heads {
		if err := m.advance(&heads[i], stays); err != nil {
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

// claim assigns to a head the context of its branch, or one that points to its message.
func (m *matching) claim(h *head) {
	at := m.pointOf(m.nodes.at(h.node), h)
	named := m.named(h.name)
	if named != nil {
		named.rename(h.metadata)
	}
	switch {
	case h.name != "":
		if h.context = named; h.context != nil && !h.context.Tip.IsZero() && !m.follows(h.node, h.context.Tip) {
			h.name, h.context = "", nil // the branch was continued in the store and stays
		}
	case !m.done[at]:
		h.context = m.free(at)
	}
	if h.context != nil {
		h.context.taken, m.done[at] = true, true
	}
}

// advance moves the context of a head to its message. If the head has no context and needs one, advance creates it.
func (m *matching) advance(h *head, stays bool) error {
	if h.done {
		return nil
	}
	h.done = true
	if from := m.branches[h.parent]; from != nil {
		if err := m.advance(from, stays); err != nil {
			return err
		}
	}
	n := m.nodes.at(h.node)
	if c := h.context; c != nil {
		if !c.stored {
			c.Metadata = h.metadata
		}
		c.moveTo(m.ref(n))
		m.claimed[n.aside] = append(m.claimed[n.aside], h.node)
		return nil
	}
	at := m.pointOf(n, h)
	if h.name == "" && m.done[at] && !h.current {
		return nil
	}
	if h.name == "" && (!h.current || stays || m.implied) {
		if inner, err := m.thread.outline.continues(m.ctx, m.store, at.at); inner || err != nil {
			return err
		}
	}
	m.done[at] = true
	for _, node := range m.claimed[n.aside] {
		m.walk(node, nil)
	}
	delete(m.claimed, n.aside)
	var behind *contextState
	fork := m.walk(h.node, func(n loaded) bool {
		behind = m.free(m.pointOf(n, h))
		return behind != nil
	})
	if main := m.named(lineage.MainBranch); behind == nil && at.aside == "" && main != nil && main.Tip.IsZero() && !main.taken && h.name == "" {
		if behind = main; !main.stored {
			main.At = fork
		}
	}
	if behind == nil || h.name != "" {
		behind = m.newContext(h, at.aside, fork)
	}
	behind.taken = true
	h.context = behind
	behind.moveTo(m.ref(n))
	return nil
}

// pointOf returns the point of a message in the aside of a head.
func (m *matching) pointOf(n loaded, h *head) point {
	return point{m.ref(n), m.asides[m.nodes.at(h.node).aside]}
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
func (m *matching) walk(node int32, found func(loaded) bool) structure.SpanRef {
	for aside := m.nodes.at(node).aside; node >= 0; node = m.nodes.at(node).parent {
		n := m.nodes.at(node)
		if n.visited == m.round || n.aside != aside {
			return m.ref(n)
		}
		if found != nil && (found(n) || n.foreign || n.adopted) {
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
