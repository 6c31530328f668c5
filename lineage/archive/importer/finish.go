package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
)

// finishOpen completes the conversation being loaded.
func (l *loader) finishOpen() error {
	st := l.open
	l.open = nil
	if st == nil || st.leftOut {
		return nil
	}
	if st.derived && l.inFile == 1 && rawjson.Get(st.header.Metadata, archive.KeyAgent) == nil { // a session is named after its first prompt
		st.runOf = l.title
	}
	l.next.retain(item{st, nil}, int64(st.nodes.len())<<8)
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

// finish points contexts to the ends of the conversation's branches, and rewrites the record of its thread if that
// has changed.
func (l *loader) finish(st *loading) error {
	t := st.thread
	state, err := l.state()
	if err != nil {
		return err
	}
	if t.stage == inStore {
		if found, err := l.readAgain(st, state); err != nil {
			return err
		} else if !found {
			return l.resume(st)
		}
	}
	if st.header.Continues == nil {
		t.record.UserID = firstOf(t.record.UserID, l.userOf(st))
	}
	heads := l.heads(st)
	r := st.restatement(heads)
	if err := l.match(st, state, heads, r.outdated || r.keepsActive); err != nil {
		return err
	}
	st.state = r.was.sum()
	if r.changed() && !r.outdated {
		st.restate(r, heads)
	}
	if st.header.Continues == nil {
		t.record.Metadata = addMembers(t.record.Metadata, l.options.Metadata)
	}
	return l.write(st)
}

// restatement is what the archive states of a conversation now, beside what it stated at the last import.
type restatement struct {
	was, now archiveState
	// outdated is set if a later state was imported before.
	outdated bool
	// keepsActive is set if the archive does not state another current message than before.
	keepsActive bool
}

func (r *restatement) first() bool { return r.was.Format == "" }

func (r *restatement) changed() bool { return r.now.sum() != r.was.sum() }

func (st *loading) restatement(heads []head) *restatement {
	r := &restatement{was: st.thread.archived, now: st.archiveState(heads)}
	r.now.keep(&r.was, st)
	// For an input that grows: a state that another reader has stored since the last round stays, unless this reader has
	// new nodes.
	settledElsewhere := st.settled != "" && st.settled != r.was.sum() && !st.grew
	r.outdated = r.now.Updated < r.was.Updated || slices.Contains(r.was.Seen, r.now.sum()) || settledElsewhere
	saysCurrent := st.header.Current != "" || len(heads) == 0 || heads[0].name != lineage.MainBranch
	sameCurrent := r.now.Current == r.was.Current || !saysCurrent
	r.keepsActive = !r.first() && sameCurrent || st.header.Current == "" && st.isEmpty(lineage.MainBranch)
	return r
}

// restate gives the record of the thread what the archive states now. A title that others have set stays.
func (st *loading) restate(r *restatement, heads []head) {
	record := &st.thread.record
	if record.Title == r.was.Title {
		record.Title = r.now.Title
	}
	if len(heads) > 0 && heads[0].current && heads[0].context != nil && !r.keepsActive {
		record.Active = heads[0].context.ID
	}
	if !r.first() {
		r.now.Seen = append(slices.Clone(r.was.Seen[max(0, len(r.was.Seen)-maxSeen+1):]), r.was.sum())
	}
	st.state = r.now.sum()
	record.Metadata = st.metadata(r.now, r.now.Metadata != r.was.Metadata || r.first() && st.header.Metadata != nil)
}

// readAgain reads the stored thread of a conversation and its contexts. It returns false if the thread was deleted.
func (l *loader) readAgain(st *loading, state backend.Reader) (found bool, err error) {
	t := st.thread
	stored, err := state.Thread(l.ctx, t.record.ID)
	if errors.Is(err, lineage.ErrNotFound) || err == nil && stored.Incarnation != t.record.Incarnation {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.setStored(st, t, stored)
	return true, l.existing(t, state)
}

// keep keeps what the archive does not state as it was.
func (s *archiveState) keep(was *archiveState, st *loading) {
	if st.bare && was.Format != "" && was.Format != s.Format {
		s.Format, s.Title, s.Model, s.Metadata = was.Format, firstOf(was.Title, s.Title), firstOf(was.Model, s.Model), firstOf(was.Metadata, s.Metadata)
	}
	s.Title = firstOf(s.Title, was.Title, st.runOf)
	s.Model = firstOf(s.Model, was.Model)
	s.Current = firstOf(s.Current, was.Current)
	s.ForkedFrom = firstOf(s.ForkedFrom, was.ForkedFrom)
	if st.header.Metadata == nil {
		s.Metadata = was.Metadata
	}
	if s.Updated == 0 {
		s.Updated = was.Updated
	}
	switch {
	case st.header.Continues != nil:
		*s = *was
	case st.last[0] < 0 && was.Format != "":
		// The file of a subagent does not change what the file of the conversation states. It states the agent only if
		// that file does not.
		metadata := s.Metadata
		*s = *was
		s.Metadata = firstOf(was.Metadata, metadata)
	}
}

// write adds the changes of the thread and its contexts to the current commit. UpdatedAt of the thread is the
// archive's, if known. Changes of many contexts of an existing thread are split into several commits.
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
	if !same || added { // a context that moved has a record of its own
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

// writeContexts adds the changes of a thread's contexts. It reports whether there were changes, whether there are new
// contexts, and whether the whole end of the conversation is already in a commit.
func (l *loader) writeContexts(st *loading) (changed, added, whole bool, err error) {
	t := st.thread
	for _, c := range t.contexts {
		if c.metadata != nil {
			now := *c.was
			now.Metadata, changed = c.metadata, true
			l.next.ExpectContext(c.ID, c.was)
			l.next.StateContext(now)
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
	for _, id := range t.stale() {
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

// flushFull flushes the current commit in the middle of the end of a conversation, if the commit is full and the
// thread is in the store. It reports whether the commit was filled again; then it has the whole end.
func (l *loader) flushFull(st *loading) (whole bool, err error) {
	f := l.next
	if st.thread.stage != inStore || !f.full() || l.replaying {
		return false, nil
	}
	if err := l.flush(); err != nil || f.refilled {
		return true, err
	}
	l.next.retain(item{st, nil}, 0)
	return false, nil
}

// archiveState returns the state of the conversation in the archive. For a derived source id, it leaves out what the
// id depends on.
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
		s.Current = fmt.Sprintf("%08x", st.nodes.at(heads[0].node).mark)
	}
	return s
}

// metadata returns the metadata of the thread with a state in it. If changed is set, the members that the archive
// states replace those of the thread; others stay.
func (st *loading) metadata(s archiveState, changed bool) []byte {
	stored, stated := st.thread.record.Metadata, st.header.Metadata
	if !json.Valid(stored) || !rawjson.IsObject(stored) {
		stored, changed = nil, true
	}
	var o rawjson.Object
	has := map[string]bool{archiveKey: true}
	if changed {
		for m := range rawjson.Members(stated) {
			if m.Key != archiveKey {
				has[m.Key] = true
				o.Add(m)
			}
		}
	}
	for m := range rawjson.Members(stored) {
		if !has[m.Key] {
			o.Add(m)
		}
	}
	state, _ := json.Marshal(s)
	o.Set(archiveKey, state)
	return o.Bytes()
}
