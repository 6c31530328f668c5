package importer

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// begin looks up the thread of a conversation.
func (l *loader) begin(st *loading) error {
	t := &threadState{copies: st.copies, grown: make(map[structure.RunID]bool, 2), ends: make(map[structure.RunID]uint64, 2), held: make(map[structure.RunID]structure.Context)}
	state, err := l.state()
	if err != nil {
		return err
	}
	was, err := state.Thread(l.ctx, st.threadID())
	switch {
	case errors.Is(err, lineage.ErrNotFound) && st.header.Continues != nil:
		st.thread = t
		l.leaveOut(st, ErrDeleted)
		return nil
	case errors.Is(err, lineage.ErrNotFound):
		t.created = true
		err = l.newThread(st, t, state)
	case err == nil:
		t.existed, t.stage = true, inStore
		l.setStored(st, t, was)
		err = l.shareOwn(t, state)
	}
	if l.grows && st.settled == "" {
		st.settled = t.archived.sum()
	}
	st.thread = t
	return err
}

// setStored sets the state of a thread that is in the store.
func (l *loader) setStored(st *loading, t *threadState, was *structure.Thread) {
	t.record, t.was, t.archived = *was, was, archivedIn(was)
	t.record.UserID = firstOf(was.UserID, l.userOf(st))
}

// resumeOpen updates the open conversation to the current state of the store.
func (l *loader) resumeOpen() error {
	st := l.open
	if st == nil {
		return nil
	}
	l.next.reset()
	if err := l.resume(st); err != nil {
		return err
	}
	if st.leftOut {
		return ErrDeleted
	}
	return nil
}

// resume reads the state of a conversation's thread again. If the thread was deleted, the conversation is marked
// leftOut.
func (l *loader) resume(st *loading) error {
	t := st.thread
	if t.stage != inStore {
		return l.begin(st)
	}
	t.created, st.grew = false, false
	clear(t.grown)
	clear(t.ends)
	state, err := l.state()
	if err != nil {
		return err
	}
	was, err := state.Thread(l.ctx, t.record.ID)
	if errors.Is(err, lineage.ErrNotFound) || err == nil && was.Incarnation != t.record.Incarnation {
		l.leaveOut(st, ErrDeleted)
		return nil
	}
	if err != nil {
		return err
	}
	for run, c := range t.held {
		stored, err := state.Context(l.ctx, c.ID)
		switch {
		case errors.Is(err, lineage.ErrNotFound) || err == nil && !structure.Equal(&stored.Context, &c):
			delete(t.held, run) // another import has completed the conversation
		case err != nil:
			return err
		}
	}
	l.setStored(st, t, was)
	if !t.existed {
		return nil
	}
	return l.shareOwn(t, state)
}

// leaveOut leaves out the rest of a conversation.
func (l *loader) leaveOut(st *loading, why error) {
	if !st.leftOut {
		st.leftOut = true
		l.report.skip(archive.Damaged(archive.Position{File: l.file, Inside: "conversation " + st.header.SourceID}, why))
	}
}

// refuseNamesake leaves out a conversation whose source id a thread of another user has, unless the thread has its first
// message: programs let people choose ids, so that conversations of two of them can have the same.
func (l *loader) refuseNamesake(st *loading, nodes []archive.Node) error {
	t := st.thread
	if st.compared || l.grows || t == nil || !t.existed || len(nodes) == 0 {
		return nil
	}
	st.compared = true
	user := l.userOf(st)
	if user == "" || t.was.UserID == "" || t.was.UserID == user || nodes[0].ID == "" {
		return nil
	}
	state, err := l.state()
	if err != nil {
		return err
	}
	_, err = backend.FindFirst(l.ctx, state, nodes[0].ID, t.record.ID)
	if errors.Is(err, lineage.ErrNotFound) {
		l.leaveOut(st, errNamesake)
		return nil
	}
	return err
}

// newThread prepares a new thread for a conversation. It adds nothing to the batch.
func (l *loader) newThread(st *loading, t *threadState, state backend.Reader) error {
	created := st.header.Created
	if created.IsZero() {
		created = l.next.Time()
	}
	main := &contextState{
		Context: write.Context{ID: structure.NewID[structure.ContextID](), Thread: write.SourceThread(st.header.SourceID), CreatedAt: created},
		branch:  lineage.MainBranch,
	}
	if st.header.Model != "" {
		main.Overrides.Model = &st.header.Model
	}
	t.contexts, t.main = []*contextState{main}, main.ID
	record := &t.record
	record.ID, record.SourceID, record.UserID, record.CreatedAt, record.Active = main.Thread, st.header.SourceID, l.userOf(st), created, main.ID
	origin := l.threadOf(st.header.ForkedFrom)
	if st.header.ForkedFrom == "" || origin == record.ID {
		origin = st.copiedFrom
	}
	if origin.IsZero() {
		return nil
	}
	from, err := state.Thread(l.ctx, origin)
	if errors.Is(err, lineage.ErrNotFound) || err == nil && from.UserID != record.UserID {
		return nil
	}
	if err != nil {
		return err
	}
	if origin != st.copiedFrom || l.isFork(st, from) {
		main.Parent = from.Active
	}
	return l.shareWith(t, from, state)
}

// threadOf returns the id of the thread of another conversation.
func (l *loader) threadOf(sourceID string) structure.ThreadID {
	return write.SourceThread(l.options.Prefix + sourceID)
}

// shareWith lets a thread share the messages that can be reached from the contexts of another thread of the same
// user.
func (l *loader) shareWith(t *threadState, from *structure.Thread, state backend.Reader) error {
	t.base = make(backend.Reach)
	return t.base.FollowContexts(l.ctx, state, from.ID)
}

// shareOwn lets a thread in the store share what its contexts have of other threads.
func (l *loader) shareOwn(t *threadState, state backend.Reader) error {
	const keep = true
	o, err := l.outlines.get(l.ctx, l.engine, state, t.record.Home(), keep)
	if err == nil {
		t.base, err = o.base(l.ctx, state)
	}
	return err
}

// addThread adds a new thread to the current commit. It has no contexts yet, because the start of its main branch is
// only known at the end.
func (l *loader) addThread(t *threadState) {
	if t.stage != absent {
		return
	}
	t.stage = inCommit
	created := l.next.NewThread(write.Thread{SourceID: t.record.SourceID, UserID: t.record.UserID, CreatedAt: t.record.CreatedAt, UpdatedAt: t.record.CreatedAt})
	t.record.Incarnation, t.record.UpdatedAt = created.Incarnation, created.UpdatedAt
	l.next.added.conversations++
}

// userOf returns the user of a conversation.
func (l *loader) userOf(st *loading) string { return firstOf(st.header.UserID, l.options.UserID) }

// existing looks up the contexts of a thread in the store.
func (l *loader) existing(t *threadState, state backend.Reader) error {
	const keep = false
	o, err := l.outlines.get(l.ctx, l.engine, state, t.record.Home(), keep)
	if err != nil {
		return err
	}
	t.outline, t.contexts, t.known, t.reused = o, nil, make(map[structure.ContextID]*contextState), make(map[structure.ContextID]bool)
	t.main = structure.ContextID{}
	if main := o.branches[lineage.MainBranch]; main != nil {
		t.main = main.ID
	}
	t.held = o.held()
	return nil
}

// state returns the state of a context of the outline.
func (t *threadState) state(c *outlined) *contextState {
	if known := t.known[c.ID]; known != nil {
		return known
	}
	known := &contextState{Context: write.Context{ID: c.ID, Tip: c.Tip}, branch: c.branch, aside: c.aside, stored: true, old: c.Tip}
	if known.branch != "" && len(c.Metadata) > 0 {
		own := c.Context
		known.was = &own
	}
	t.contexts, t.known[c.ID] = append(t.contexts, known), known
	return known
}

// protect completes a commit that has a part of a conversation. The thread gets its main branch, and contexts protect
// the stored part from garbage collection.
func (l *loader) protect(t *threadState) error {
	if t.stage == absent {
		return nil
	}
	l.next.threads[t.record.ID] = true
	if t.was == nil {
		main := t.contexts[0]
		l.next.NewContext(main.Context)
		l.next.Branch(&t.record, main.branch, "", main.ID, main.CreatedAt)
		t.was = l.next.StateThread(t.record)
	}
	if t.stage == inStore {
		state, err := l.state()
		if err != nil {
			return err
		}
		main, err := state.Branch(l.ctx, t.record.ID, lineage.MainBranch)
		switch {
		case err == nil:
			t.main = main.Context
		case errors.Is(err, lineage.ErrNotFound):
			t.main = structure.ContextID{}
		default:
			return err
		}
	}
	placer, err := l.next.placerOf(t)
	if err != nil {
		return err
	}
	for run := range t.grown {
		tip := structure.SpanRef{Run: run, Seq: placer.End(run)}
		if c, held := t.held[run]; held {
			was := c
			l.next.ExpectContext(c.ID, &was)
			l.next.Point(c.ID, tip)
			c.Tip = tip
			t.held[run] = c
			continue
		}
		t.held[run] = *l.next.NewContext(write.Context{
			Thread: t.record.ID, Parent: t.main, At: placer.Begun(run), Tip: tip, Metadata: asideMetadata(asideImporting),
		})
	}
	return nil
}

func asideMetadata(aside string) []byte {
	b, _ := json.Marshal(map[string]string{"aside": aside})
	return b
}

// isFork reports whether the archive says that the conversation was forked from a thread.
func (l *loader) isFork(st *loading, from *structure.Thread) bool {
	id, ok := strings.CutPrefix(from.SourceID, l.options.Prefix)
	return ok && st.header.ForkedFrom != "" && archive.IsOf(id, st.header.ForkedFrom)
}
