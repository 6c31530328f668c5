package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// head is a node that a context should point to. Its name is empty for a branch with an automatic one.
type head struct {
	namedHead
	current bool
	context *contextState
	done    bool
}

// finishOpen completes the conversation being loaded.
func (l *loader) finishOpen() error {
	st := l.open
	l.open = nil
	if st == nil || st.lost {
		return nil
	}
	if st.derived && l.inFile == 1 {
		st.runOf = l.title
	}
	l.next.retain(item{st, nil}, int64(len(st.nodes))<<8)
	if err := l.finish(st); err != nil {
		return err
	}
	if l.next.empty() {
		l.next.release()
		return nil
	}
	if l.next.full() {
		return l.flush()
	}
	return nil
}

// finish points contexts to the ends of the branches of a conversation, and restates its thread if it has changed.
func (l *loader) finish(st *loading) error {
	t := st.thread
	if t.committed {
		state, err := l.state()
		if err != nil {
			return err
		}
		was, err := state.Thread(l.ctx, t.record.ID)
		if errors.Is(err, lineage.ErrNotFound) || err == nil && was.Incarnation != t.record.Incarnation {
			return l.resume(st)
		}
		if err != nil {
			return err
		}
		l.know(st, t, was)
		if err := l.existing(t); err != nil {
			return err
		}
	}
	t.record.UserID = firstOf(t.record.UserID, l.userOf(st))
	heads := l.heads(st)
	was := t.archived
	is := st.archiveState(heads)
	// Fields that the archive does not have stay unchanged.
	is.Title = firstOf(is.Title, was.Title, st.runOf)
	is.Model = firstOf(is.Model, was.Model)
	is.Current = firstOf(is.Current, was.Current)
	is.ForkedFrom = firstOf(is.ForkedFrom, was.ForkedFrom)
	if st.header.Metadata == nil {
		is.Metadata = was.Metadata
	}
	if is.Updated == 0 {
		is.Updated = was.Updated
	}
	// The file of a subagent says nothing of the conversation that another file says.
	if st.last[0] < 0 && was.Format != "" {
		is = was
	}
	// Of an input that grows: what another reader has stored since, that reader has settled.
	older := is.Updated < was.Updated || slices.Contains(was.Seen, is.sum()) || st.settled != "" && st.settled != was.sum() && !st.grew
	st.state = was.sum()
	known := was.Format != ""
	saysCurrent := st.header.Current != "" || len(heads) == 0 || heads[0].name != lineage.MainBranch
	stays := known && (is.Current == was.Current || !saysCurrent) || st.header.Current == "" && st.isEmpty(lineage.MainBranch)
	if err := l.match(st, heads, older || stays); err != nil {
		return err
	}
	if is.sum() != was.sum() && !older {
		if is.Title != was.Title && (known || t.record.Title == "") {
			t.record.Title = is.Title
		}
		if len(heads) > 0 && heads[0].current && !stays {
			t.record.Active = heads[0].context.ID
		}
		if known {
			is.Seen = append(slices.Clone(was.Seen[max(0, len(was.Seen)-maxSeen+1):]), was.sum())
		}
		st.state = is.sum()
		t.record.Metadata = st.metadata(is, is.Metadata != was.Metadata || !known && st.header.Metadata != nil)
	}
	t.record.Metadata = addMembers(t.record.Metadata, l.options.Metadata)
	return l.write(st)
}

// older reports whether the archive has the conversation as of an earlier time than the store.
func (st *loading) older() bool {
	t := st.thread
	return t.existed && !st.header.Updated.IsZero() && st.header.Updated.UnixMilli() < t.archived.Updated
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// archiveState returns the archive's state of the conversation, except for what is part of a
// derived source id.
func (st *loading) archiveState(heads []head) archiveState {
	s := archiveState{
		Format: st.format, Title: st.header.Title, Model: st.header.Model, ForkedFrom: st.header.ForkedFrom,
	}
	if !st.derived {
		s.Metadata = checksum(st.header.Metadata)
	}
	if !st.header.Updated.IsZero() && st.last[0] >= 0 {
		s.Updated = st.header.Updated.UnixMilli()
	}
	if len(heads) > 0 && heads[0].current && (!st.derived && !st.again || st.header.Current != "") {
		s.Current = fmt.Sprintf("%08x", st.nodes[heads[0].node].mark)
	}
	return s
}

// archivedIn returns the state that the last import stored in a thread's metadata.
func archivedIn(t *structure.Thread) archiveState {
	var s archiveState
	if json.Valid(t.Metadata) {
		_ = json.Unmarshal(rawjson.Get(t.Metadata, archiveKey), &s) // others may have set it
	}
	return s
}

// metadata returns the thread's metadata with a state in it; if replace is set, based on the
// archive's metadata.
func (st *loading) metadata(s archiveState, replace bool) []byte {
	from := st.thread.record.Metadata
	if replace || !json.Valid(from) || !rawjson.IsObject(from) {
		from = st.header.Metadata
	}
	var o jsonObject
	for m := range rawjson.Members(from) {
		if m.Key != archiveKey {
			o.add(m)
		}
	}
	state, _ := json.Marshal(s)
	o.set(archiveKey, state)
	return o.bytes()
}

// addMembers adds members to the metadata of a thread, in place of those with the same keys.
func addMembers(metadata, more []byte) []byte {
	if len(metadata) > 0 && (!rawjson.Valid(metadata) || !rawjson.IsObject(metadata)) {
		return metadata // others have set it
	}
	for m := range rawjson.Members(more) {
		if !bytes.Equal(rawjson.Get(metadata, m.Key), m.Value) {
			return rawjson.MergePatch(metadata, more)
		}
	}
	return metadata
}

// heads returns the nodes that contexts should point to: the current node first, then named
// branches, then leaves.
func (l *loader) heads(st *loading) []head {
	var heads []head
	at := make(map[int32]bool)
	current := int32(-1)
	if c := st.header.Current; c != "" {
		if i, ok := st.byID[c]; ok {
			current = i
		} else {
			l.repair(damaged(Position{File: l.file, Inside: "conversation " + st.header.SourceID},
				malformed("its current message %q is missing; the last one is current", c)))
		}
	}
	if current < 0 {
		current = st.last[0]
		for _, n := range st.named {
			if n.name == lineage.MainBranch {
				current = n.node
			}
		}
	}
	if current >= 0 && st.nodes[current].aside == 0 {
		h := head{namedHead: namedHead{node: current}, current: true}
		for _, n := range st.named {
			if n.node == current {
				h.namedHead = n
			}
		}
		heads, at[current] = append(heads, h), true
	}
	for _, n := range st.named {
		if n.node != current {
			heads, at[n.node] = append(heads, head{namedHead: n}), true
		}
	}
	for _, i := range st.leaves {
		if !at[i] {
			heads = append(heads, head{namedHead: namedHead{node: i}})
		}
	}
	return heads
}

// isEmpty reports whether the archive has a branch without messages.
func (st *loading) isEmpty(name string) bool {
	return slices.ContainsFunc(st.header.Empty, func(b EmptyBranch) bool { return b.Name == name })
}

// addEmpty creates the branches without messages that the thread does not have.
func (m *matching) addEmpty() {
	for _, b := range m.header.Empty {
		c := m.named[b.Name]
		if c == nil {
			from := m.thread.main
			if of := m.named[b.Of]; of != nil {
				from = of.ID
			}
			c = &contextState{
				Context: write.Context{
					ID: structure.NewID[structure.ContextID](), Thread: m.thread.record.ID, Parent: from, CreatedAt: m.thread.record.CreatedAt,
				},
				branch: b.Name,
			}
			m.named[b.Name] = c
			m.thread.contexts = append(m.thread.contexts, c)
		}
		if !c.stored && c.Tip.IsZero() {
			c.Metadata = b.Metadata
		}
		c.rename(b.Metadata)
	}
}

// matching assigns a context to each head: one that points to its message, else one that points to
// an earlier message and is advanced, else a new one. A leaf that a history of the thread continues
// needs no context, nor does a current node that is not to become current.
type matching struct {
	*loading
	pointing map[point][]*contextState
	named    map[string]*contextState // by branches
	branches map[string]*head
	done     map[point]bool    // points with a context: equal histories share one
	claimed  map[int32][]int32 // by aside, the nodes of heads before whose histories were not walked
	// reach is what contexts of the store lead to, followed the spans after which some of its runs begin.
	reach    backend.Reach
	followed map[structure.SpanRef]bool
}

// point is a message in an aside.
type point struct {
	at    structure.SpanRef
	aside string
}

func (l *loader) match(st *loading, heads []head, stays bool) error {
	st.round++
	m := matching{
		loading: st, reach: make(backend.Reach), followed: make(map[structure.SpanRef]bool), pointing: make(map[point][]*contextState, len(st.thread.contexts)), named: make(map[string]*contextState),
		branches: make(map[string]*head), done: make(map[point]bool), claimed: make(map[int32][]int32),
	}
	if t := st.thread; t.existed && len(t.stale) == 0 {
		m.reach = t.base // most of it is known
	}
	state, err := l.state()
	if err != nil {
		return err
	}
	for _, c := range st.thread.contexts {
		if at := (point{c.Tip, c.aside}); !c.Tip.IsZero() && (c.aside != "" || c.branch != "") {
			m.pointing[at] = append(m.pointing[at], c)
		}
		if c.branch != "" {
			m.named[c.branch] = c
		}
		if err := m.reach.Follow(l.ctx, state, c.old); err != nil {
			return err
		}
	}
	for _, e := range m.reach {
		m.followed[e.Run.Parent] = true
	}
	for i := range heads {
		if m.claim(&heads[i]); heads[i].name != "" {
			m.branches[heads[i].name] = &heads[i]
		}
	}
	for i := range heads {
		m.advance(&heads[i], stays)
	}
	m.addEmpty()
	return nil
}

// inner reports whether a context of the store leads beyond a message.
func (m *matching) inner(n *loaded) bool {
	return m.followed[n.ref] || m.reach.Has(structure.SpanRef{Run: n.ref.Run, Seq: n.ref.Seq + 1})
}

// claim assigns a head the context of its branch, or one that points to its message.
func (m *matching) claim(h *head) {
	at := m.pointOf(&m.nodes[h.node], h)
	if is := m.named[h.name]; is != nil {
		is.rename(h.metadata)
	}
	switch {
	case h.name != "":
		if h.context = m.named[h.name]; h.context != nil && !h.context.Tip.IsZero() && !m.follows(h.node, h.context.Tip) {
			h.name, h.context = "", nil // the branch was continued in the store and stays
		}
	case !m.done[at]:
		h.context = m.free(at)
	}
	if h.context != nil {
		h.context.taken, m.done[at] = true, true
	}
}

// follows reports whether a node is a message or comes after it.
func (st *loading) follows(node int32, message structure.SpanRef) bool {
	for ; node >= 0; node = st.nodes[node].parent {
		if st.nodes[node].ref == message {
			return true
		}
	}
	return false
}

// advance moves the context of a head to its message, and creates one if it is missing and needed.
func (m *matching) advance(h *head, stays bool) {
	if h.done {
		return
	}
	h.done = true
	if from := m.branches[h.of]; from != nil {
		m.advance(from, stays)
	}
	n := &m.nodes[h.node]
	if c := h.context; c != nil {
		if !c.stored {
			c.Metadata = h.metadata
		}
		c.moveTo(n)
		m.claimed[n.aside] = append(m.claimed[n.aside], h.node)
		return
	}
	at := m.pointOf(n, h)
	if h.name == "" && (m.done[at] && !h.current || m.inner(n) && (!h.current || stays)) {
		return
	}
	m.done[at] = true
	for _, node := range m.claimed[n.aside] {
		m.walk(node, nil)
	}
	delete(m.claimed, n.aside)
	var behind *contextState
	fork := m.walk(h.node, func(n *loaded) bool {
		behind = m.free(m.pointOf(n, h))
		return behind != nil
	})
	if main := m.named[lineage.MainBranch]; behind == nil && at.aside == "" && main != nil && main.Tip.IsZero() && !main.taken && h.name == "" {
		if behind = main; !main.stored {
			main.At = fork
		}
	}
	if behind == nil || h.name != "" {
		behind = m.newContext(h, at.aside, fork)
	}
	behind.taken = true
	h.context = behind
	behind.moveTo(n)
}

// pointOf returns a message in the aside of a head.
func (m *matching) pointOf(n *loaded, h *head) point {
	return point{n.ref, m.asides[m.nodes[h.node].aside]}
}

// free returns a context that points to a message and is not assigned to a head.
func (m *matching) free(at point) *contextState {
	for _, c := range m.pointing[at] {
		if !c.taken {
			return c
		}
	}
	return nil
}

// renamedFrom is the key under which the metadata of a branch that was renamed in the store has the name that the
// archive gave it.
const renamedFrom = "renamedFrom"

// rename gives a branch in the store the metadata of the archive, if that has a new name and was updated later.
func (c *contextState) rename(metadata []byte) {
	if c.was == nil || !rawjson.IsObject(metadata) || !rawjson.Valid(c.was.Metadata) || !rawjson.IsObject(c.was.Metadata) {
		return
	}
	was := c.was.Metadata
	name := rawjson.Str(rawjson.Get(metadata, "name"))
	if name == "" || name == rawjson.Str(rawjson.Get(was, "name")) || name == rawjson.Str(rawjson.Get(was, renamedFrom)) ||
		!parseTime(rawjson.Get(metadata, "updatedAt")).After(parseTime(rawjson.Get(was, "updatedAt"))) {
		return
	}
	c.metadata = rawjson.MergePatch(rawjson.Remove(was, renamedFrom), metadata)
}

func (c *contextState) moveTo(n *loaded) {
	if c.Tip != n.ref {
		c.Tip, c.dirty = n.ref, true
	}
}

// walk visits a node and its ancestors. It stops at a node that was visited before or is in another aside, or when
// found returns true, and returns the span there.
func (m *matching) walk(node int32, found func(*loaded) bool) structure.SpanRef {
	for aside := m.nodes[node].aside; node >= 0; node = m.nodes[node].parent {
		n := &m.nodes[node]
		if n.visited == m.round || n.aside != aside {
			return n.ref
		}
		if found != nil && (found(n) || n.foreign || n.adopted) {
			return n.ref
		}
		n.visited = m.round
	}
	return structure.SpanRef{}
}

// newContext creates a context for a head.
func (m *matching) newContext(h *head, aside string, fork structure.SpanRef) *contextState {
	t, n := m.thread, &m.nodes[h.node]
	c := &contextState{
		Context: write.Context{
			ID: structure.NewID[structure.ContextID](), Thread: t.record.ID, Parent: t.main, At: fork, CreatedAt: n.created,
		},
		aside: aside, dirty: true,
	}
	if c.CreatedAt.IsZero() {
		c.CreatedAt = t.record.CreatedAt
	}
	if from := m.named[h.of]; from != nil {
		c.Parent = from.ID
	}
	if held, ok := t.held[n.ref.Run]; ok && held.Parent == c.Parent && held.Base == c.At {
		c.ID, t.reused[held.ID] = held.ID, true
		delete(t.held, n.ref.Run)
	}
	if aside != "" {
		c.Metadata = asideMetadata(aside)
	} else {
		c.branch, c.Metadata = h.name, h.metadata
		for n := len(m.named) + 1; c.branch == ""; n++ {
			if name := lineage.MainBranch + "-v" + strconv.Itoa(n); m.named[name] == nil {
				c.branch = name
			}
		}
		m.named[c.branch] = c
		if c.branch == lineage.MainBranch {
			t.main = c.ID
		}
	}
	t.contexts = append(t.contexts, c)
	return c
}

// write adds the changes of the thread and its contexts to the current commit. The thread's
// UpdatedAt is the archive's, if known. Many contexts of an existing thread are split into several
// commits.
func (l *loader) write(st *loading) error {
	t, updated := st.thread, st.header.Updated
	l.addThread(t)
	changed, added, whole, err := l.writeContexts(st)
	if whole || err != nil {
		return err
	}
	if t.was == nil {
		l.next.threads[t.record.ID] = true
		t.record.UpdatedAt = laterTime(t.record.CreatedAt, updated)
		l.next.StateThread(t.record)
		return nil
	}
	same := t.record.Title == t.was.Title && t.record.Active == t.was.Active && t.record.UserID == t.was.UserID &&
		bytes.Equal(t.record.Metadata, t.was.Metadata)
	if same && !changed {
		return nil
	}
	l.next.threads[t.record.ID] = true
	if !same || added { // a moved context has its own record
		l.next.ExpectThread(t.was.ID, t.was)
		t.record.UpdatedAt = laterTime(t.was.UpdatedAt.Add(time.Millisecond), updated)
		l.next.StateThread(t.record)
	}
	return nil
}

// laterTime returns the later of two times in whole milliseconds.
func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		a = b
	}
	return a.UTC().Truncate(time.Millisecond)
}

// writeContexts adds the changes of a thread's contexts, and reports whether there were changes and
// new contexts, or whether the whole end of the conversation was written already.
func (l *loader) writeContexts(st *loading) (changed, added, whole bool, err error) {
	t := st.thread
	for _, c := range t.contexts {
		if c.metadata != nil {
			is := *c.was
			is.Metadata, changed = c.metadata, true
			l.next.ExpectContext(c.ID, c.was)
			l.next.StateContext(is)
		}
		switch {
		case !c.stored:
			added = true
			l.next.NewContext(c.Context)
			if c.branch != "" {
				l.next.Branch(&t.record, c.branch, "", c.ID, c.CreatedAt)
			}
		case c.dirty:
			l.next.Expect(c.ID, c.old)
			l.next.Point(c.ID, c.Tip)
		default:
			continue
		}
		changed = true
		if whole, err := l.flushFull(st); whole || err != nil {
			return changed, added, whole, err
		}
	}
	for _, id := range t.stale {
		if t.reused[id] {
			continue
		}
		l.next.DeleteContext(id)
		changed = true
		if whole, err := l.flushFull(st); whole || err != nil {
			return changed, added, whole, err
		}
	}
	return changed, added, false, nil
}

// flushFull flushes the current commit in the middle of the end of a conversation, if it is full and the thread is in
// the store. If the commit was filled again, it has the whole end.
func (l *loader) flushFull(st *loading) (whole bool, err error) {
	f := l.next
	if !st.thread.committed || !f.full() || l.replaying {
		return false, nil
	}
	if err := l.flush(); err != nil || f.refilled {
		return true, err
	}
	l.next.retain(item{st, nil}, 0)
	return false, nil
}
