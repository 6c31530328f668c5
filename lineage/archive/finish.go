package archive

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxTouched is after how many threads one waits, to forget which they are.
const maxTouched = 100_000

// head is a node that a context is to stand at.
type head struct {
	node    int32
	name    string // of a branch, empty for an automatic one
	current bool
	context *contextState
}

// finishOpen ends the conversation that is being loaded: it makes its contexts
// stand where its branches do, and states its thread if that has changed.
func (l *loader) finishOpen() error {
	st := l.open
	if st == nil {
		return nil
	}
	l.open = nil
	t := st.thread
	t.record.UserID = firstOf(t.record.UserID, l.userOf(st))
	heads := l.heads(st)
	was := st.archived()
	is := l.archiveState(st, heads)
	// An archive that says nothing of something leaves it as it is.
	is.Title = firstOf(is.Title, was.Title)
	is.Model = firstOf(is.Model, was.Model)
	is.Current = firstOf(is.Current, was.Current)
	is.ForkedFrom = firstOf(is.ForkedFrom, was.ForkedFrom)
	if st.header.Metadata == nil {
		is.Metadata = was.Metadata
	}
	if is.Updated == 0 {
		is.Updated = was.Updated
	}
	older := is.Updated < was.Updated || slices.Contains(was.Seen, is.sum())
	known := was.Format != ""
	stays := known && is.Current == was.Current
	st.match(heads, older || stays)
	if is.sum() != was.sum() && !older {
		if is.Title != was.Title {
			t.record.Title = is.Title
		}
		if len(heads) > 0 && heads[0].current && !stays {
			t.record.Active = heads[0].context.ID
		}
		if known {
			is.Seen = append(slices.Clone(was.Seen[max(0, len(was.Seen)-maxSeen+1):]), was.sum())
		}
		t.record.Metadata = st.metadata(is, is.Metadata != was.Metadata || !known && st.header.Metadata != nil)
	}
	if err := l.write(t, st.header.Updated); err != nil {
		return err
	}
	l.nodes = st.nodes
	switch {
	case len(l.touched) >= maxTouched:
		return l.settle()
	case l.next.full():
		return l.flush()
	}
	return nil
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// archiveState returns what the archive says of the conversation, but for what
// nothing can change without a change of its source id.
func (l *loader) archiveState(st *loading, heads []head) archiveState {
	s := archiveState{
		Format: l.format, Title: st.header.Title, Model: st.header.Model, ForkedFrom: st.header.ForkedFrom,
	}
	if !st.derived {
		s.Metadata = checksum(st.header.Metadata)
	}
	if !st.header.Updated.IsZero() {
		s.Updated = st.header.Updated.UnixMilli()
	}
	if len(heads) > 0 && heads[0].current && (!st.derived && !st.again || st.header.Current != "") {
		s.Current = st.nodes[heads[0].node].key.String()[:8]
	}
	return s
}

// archived returns what the last import left in the thread's metadata.
func (st *loading) archived() archiveState {
	var s archiveState
	if raw := st.thread.record.Metadata; json.Valid(raw) {
		_ = json.Unmarshal(get(raw, archiveKey), &s) // it may be somebody else's
	}
	return s
}

// metadata returns the thread's metadata with a state in it, and with the
// archive's in place of the thread's if replace says so.
func (st *loading) metadata(s archiveState, replace bool) []byte {
	from := st.thread.record.Metadata
	if replace || !json.Valid(from) || !isObject(from) {
		from = st.header.Metadata
	}
	var o jsonObject
	for m := range members(from) {
		if m.Key != archiveKey {
			o.add(m)
		}
	}
	state, _ := json.Marshal(s)
	o.set(archiveKey, state)
	return o.bytes()
}

// heads returns where the archive says that contexts stand: the current node
// first, then named branches, then leaves.
func (l *loader) heads(st *loading) []head {
	var heads []head
	at := make(map[int32]bool)
	current := int32(-1)
	if c := st.header.Current; c != "" {
		if i, ok := st.byID[c]; ok {
			current = i
		} else {
			l.report.repair(damaged(Position{File: l.file, Inside: "conversation " + st.header.SourceID},
				malformed("its current message %q is not there; the last is taken", c)))
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
		h := head{node: current, current: true}
		for _, n := range st.named {
			if n.node == current {
				h.name = n.name
			}
		}
		heads, at[current] = append(heads, h), true
	}
	for _, n := range st.named {
		if n.node != current {
			heads, at[n.node] = append(heads, head{node: n.node, name: n.name}), true
		}
	}
	for i := range st.nodes {
		if !st.nodes[i].kids && !at[int32(i)] {
			heads = append(heads, head{node: int32(i)})
		}
	}
	return heads
}

// match gives each head a context: the one that stands there, else one that stands
// behind it and moves up, else a new one. A leaf that a history of the thread goes
// on from needs none, and neither does the current node if it is not to become so.
func (st *loading) match(heads []head, stays bool) {
	t := st.thread
	type key struct {
		message messageKey
		aside   string
	}
	standing := make(map[key][]*contextState, len(t.contexts))
	named := make(map[string]*contextState)
	for _, c := range t.contexts {
		if !c.Tip.IsZero() && (c.aside != "" || c.branch != "") {
			standing[key{c.key, c.aside}] = append(standing[key{c.key, c.aside}], c)
		}
		if c.branch != "" {
			named[c.branch] = c
		}
	}
	free := func(k key) *contextState {
		for there := standing[k]; len(there) > 0; there = standing[k] {
			if !there[0].taken {
				return there[0]
			}
			standing[k] = there[1:] // it stays taken
		}
		return nil
	}
	keyAt := func(n *loaded, aside string) key { return key{n.key, aside} }
	done := make(map[key]bool)
	for i := range heads {
		h := &heads[i]
		n := &st.nodes[h.node]
		k := keyAt(n, st.asides[n.aside])
		if h.name != "" {
			if h.context = named[h.name]; h.context != nil {
				h.context.taken = true
				done[k] = true
			}
			continue
		}
		if done[k] {
			continue // equal histories: one context is enough
		}
		if h.context = free(k); h.context != nil {
			h.context.taken = true
			done[k] = true
		}
	}
	visited := make(map[int32]bool)
	for i := range heads {
		h := &heads[i]
		n := &st.nodes[h.node]
		if h.context != nil {
			h.context.moveTo(n)
			st.walk(h.node, visited, nil)
			continue
		}
		aside := st.asides[n.aside]
		if h.name == "" && (done[keyAt(n, aside)] && !h.current || n.inner && (!h.current || stays)) {
			continue
		}
		done[keyAt(n, aside)] = true
		var behind *contextState
		fork := st.walk(h.node, visited, func(n *loaded) bool {
			behind = free(keyAt(n, aside))
			return behind != nil
		})
		if main := named[lineage.MainBranch]; behind == nil && aside == "" && main != nil && main.Tip.IsZero() && !main.taken && h.name == "" {
			behind = main
			if !main.stored {
				behind.Base = fork
			}
		}
		if behind == nil || h.name != "" {
			behind = st.newContext(h, aside, fork, named)
		}
		behind.taken = true
		h.context = behind
		behind.moveTo(n)
	}
}

func (c *contextState) moveTo(n *loaded) {
	if c.Tip.IsZero() || c.key != n.key {
		c.Tip, c.key, c.dirty = n.ref, n.key, true
	}
}

// walk goes from a node towards the root until there was somebody before, or until
// found says so. It returns the span there.
func (st *loading) walk(node int32, visited map[int32]bool, found func(*loaded) bool) structure.SpanRef {
	for ; node >= 0; node = st.nodes[node].parent {
		n := &st.nodes[node]
		if visited[node] {
			return n.ref
		}
		if found != nil && (found(n) || n.foreign || n.adopted) {
			return n.ref
		}
		visited[node] = true
	}
	return structure.SpanRef{}
}

// newContext makes a context for a head.
func (st *loading) newContext(h *head, aside string, fork structure.SpanRef, named map[string]*contextState) *contextState {
	t, at := st.thread, st.nodes[h.node].ref
	created := st.nodes[h.node].created
	if created.IsZero() {
		created = t.record.CreatedAt
	}
	c := &contextState{
		Context: structure.Context{
			ID: structure.NewID[structure.ContextID](), Thread: t.record.ID, Parent: t.main, Base: fork, CreatedAt: created,
		},
		aside: aside, dirty: true,
	}
	if held := t.held[at.Run]; held != nil && held.Parent == c.Parent && held.Base == c.Base {
		c.ID = held.ID
		delete(t.held, at.Run)
	}
	if aside != "" {
		c.Metadata = asideMetadata(aside)
	} else {
		c.branch = h.name
		for n := len(named) + 1; c.branch == ""; n++ {
			if name := lineage.MainBranch + "-v" + strconv.Itoa(n); named[name] == nil {
				c.branch = name
			}
		}
		named[c.branch] = c
		if c.branch == lineage.MainBranch {
			t.main = c.ID
		}
	}
	t.contexts = append(t.contexts, c)
	return c
}

// write adds what has changed of the thread and its contexts to the commit at hand. The
// thread keeps the time at which the archive says that it was updated, if it does. Many
// contexts of a thread that is in the store go in several commits.
func (l *loader) write(t *threadState, updated time.Time) error {
	if t.was == nil {
		l.next.options.Threads = append(l.next.options.Threads, backend.ExpectThread{ID: t.record.ID})
		first := t.record
		first.UpdatedAt = laterTime(first.CreatedAt, updated)
		first.Active = structure.ContextID{}
		first.Metadata = nil // it comes with the whole, below
		l.next.add(&first, 64)
		l.next.added.conversations++
		if _, _, err := l.writeContexts(t); err != nil {
			return err
		}
		whole := first
		whole.Active, whole.Metadata = t.record.Active, t.record.Metadata
		l.next.add(&whole, 64+len(whole.Metadata))
		l.touched[t.record.ID] = true
		return nil
	}
	changed, added, err := l.writeContexts(t)
	if err != nil {
		return err
	}
	same := t.record.Title == t.was.Title && t.record.Active == t.was.Active && t.record.UserID == t.was.UserID &&
		bytes.Equal(t.record.Metadata, t.was.Metadata)
	if same && !changed {
		return nil
	}
	l.touched[t.record.ID] = true
	if same && !added {
		return nil // a context that moves is noted by itself
	}
	l.next.options.Threads = append(l.next.options.Threads, backend.ExpectThread{ID: t.record.ID, Was: t.was})
	t.record.UpdatedAt = laterTime(t.was.UpdatedAt.Add(time.Millisecond), updated)
	whole := t.record
	l.next.add(&whole, 64+len(whole.Metadata))
	return nil
}

// laterTime returns the later of two times in whole milliseconds.
func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		a = b
	}
	return a.UTC().Truncate(time.Millisecond)
}

// writeContexts adds what has changed of a thread's contexts, and reports whether there was
// something and whether contexts are new.
func (l *loader) writeContexts(t *threadState) (changed, added bool, err error) {
	add := func(records ...structure.Record) error {
		changed = true
		for _, r := range records {
			l.next.add(r, 64)
		}
		if t.was == nil || !l.next.full() {
			return nil
		}
		return l.flush()
	}
	for _, c := range t.contexts {
		switch {
		case !c.stored:
			added = true
			context := c.Context
			records := []structure.Record{&context}
			if c.branch != "" {
				records = append(records, &structure.Branch{Thread: t.record.ID, Name: c.branch, Context: c.ID, CreatedAt: c.CreatedAt})
			}
			err = add(records...)
		case c.dirty:
			l.next.options.Tips = append(l.next.options.Tips, backend.Expect{Context: c.ID, Tip: c.old})
			err = add(&structure.Tip{Context: c.ID, Span: c.Tip})
		}
		if err != nil {
			return changed, added, err
		}
	}
	for _, c := range t.held {
		t.stale = append(t.stale, c.ID)
	}
	for _, id := range t.stale {
		if err := add(&structure.Deletion{Subject: structure.KindContext, Context: id, At: l.now()}); err != nil {
			return changed, added, err
		}
	}
	return changed, added, nil
}
