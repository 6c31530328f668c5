package importer

import (
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/structure"
)

// findCopied finds the thread that a conversation was copied from: by the id of its first message if ids are shared,
// else by one of its first answers. An answer also shows whether lines have other ids or times in the copy. Records
// before the message found are shared as well.
func (l *loader) findCopied(st *loading, nodes []archive.Node) error {
	c, t := &st.header, st.thread
	if st.header.Continues != nil || st.sought || st.last[0] >= 0 || !c.SharedIDs && !c.Copies { // a thread that has nodes already keeps them
		return nil
	}
	first := slices.IndexFunc(nodes, func(n archive.Node) bool { return n.ID != "" && n.Aside == "" })
	if first < 0 && (!c.Copies || len(nodes) == 0) {
		return nil
	}
	if c.SharedIDs && t.base == nil && first >= 0 {
		id := nodes[first].ID
		_, err := l.shareWithCopied(st, id, func(from backend.Reader, accepts func(*structure.Thread) bool) (*structure.Thread, error) {
			return place.FindCopy(l.ctx, from, t.record.UserID, id, accepts)
		})
		if err != nil || st.leftOut {
			return err
		}
	}
	tried := 0
	for i := range nodes {
		n := &nodes[i]
		id := answerID(n)
		if !c.Copies || id == "" {
			continue
		}
		st.sought = true
		if tried++; tried > maxTried || t.base != nil && !t.sharesOthers() {
			break
		}
		if found, err := l.findAnswer(st, n, id); found || err != nil {
			return err
		}
	}
	return nil
}

// findAnswer looks for an answer in other threads, or in the part of them that the thread already shares.
func (l *loader) findAnswer(st *loading, n *archive.Node, id string) (bool, error) {
	t := st.thread
	var answer place.Message
	attribution := content.Origin{ModelID: n.Model}.Attribution()
	var err error
	if answer.Usages, err = write.Message(nil, structure.Usage{Kind: structure.MessageUsage, Role: n.Role, Name: n.Name, Type: n.Type, By: attribution}, n.Type, n.Body, answer.Store); err != nil {
		return false, err
	}
	if t.base == nil {
		st.copies, err = l.shareWithCopied(st, "answer "+id, func(from backend.Reader, accepts func(*structure.Thread) bool) (*structure.Thread, error) {
			return place.FindAnswer(l.ctx, from, t.record.UserID, &answer, accepts)
		})
	} else if state, err := l.state(); err != nil {
		return false, err
	} else if st.copies, err = place.HasAnswer(l.ctx, state, t.base, t.record.Home(), &answer); err != nil {
		return false, err
	}
	st.thread.copies = st.copies
	return st.copies, err
}

// maxTried limits the answers that are looked for in other threads.
const maxTried = 3

// answerID returns the id that the provider gave an answer, empty for none.
func answerID(n *archive.Node) string {
	if n.Aside != "" || n.Type != content.TypeJSON || len(n.Attachments) > 0 || !message.MayStateUsage(n.Role) || !message.MentionsUsage(n.Body) {
		return ""
	}
	for _, a := range message.Usage(message.Record{Body: n.Body, Role: n.Role, Model: n.Model}) {
		if a.ID != "" {
			return a.ID
		}
	}
	return ""
}

// copySearch finds a thread that has a certain message and for which accepts returns true, nil if there is none.
type copySearch func(from backend.Reader, accepts func(*structure.Thread) bool) (*structure.Thread, error)

// shareWithCopied lets the thread of a conversation share the messages of the thread that a search finds. found is false if
// the search finds none. id identifies the message searched for. If the conversation's own thread turns out to be deleted,
// st.leftOut is set, and found too.
func (l *loader) shareWithCopied(st *loading, id string, search copySearch) (found bool, err error) {
	mayBePending := l.next.firsts[id]               // the message may be in the current commit
	placedAlone := l.next.placers[st.thread] != nil // the placer was created without a base
	if mayBePending || placedAlone {
		if err := l.flush(); err != nil || st.leftOut {
			return true, err
		}
	}
	l.next.firsts[id] = true
	state, err := l.state()
	if err != nil {
		return false, err
	}
	ofProgram := func(t *structure.Thread) bool { return t.ID != st.thread.record.ID && l.isOfProgram(st, t) }
	var thread *structure.Thread
	if st.header.ForkedFrom != "" {
		thread, err = search(state, func(t *structure.Thread) bool { return ofProgram(t) && l.isFork(st, t) })
	}
	if thread == nil && err == nil {
		thread, err = search(state, ofProgram)
	}
	if thread == nil || err != nil {
		return false, err
	}
	st.copiedFrom = thread.ID
	if main := st.thread.contexts; st.thread.stage == absent && len(main) > 0 && l.isFork(st, thread) {
		main[0].Parent = thread.Active
	}
	return true, l.shareWith(st.thread, thread, state)
}

// isOfProgram reports whether a thread was imported from the format of the current input, or from another one of the same
// agent.
func (l *loader) isOfProgram(st *loading, t *structure.Thread) bool {
	format := archivedIn(t).Format
	agent := rawjson.Str(rawjson.Get(st.header.Metadata, archive.KeyAgent))
	return format == l.format || format != "" && agent != "" && agent == rawjson.Str(rawjson.Get(t.Metadata, archive.KeyAgent))
}
