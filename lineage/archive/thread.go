package archive

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"strconv"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// Asides created by imports.
const (
	// asideLog has data of an archive other than messages: events, snapshots.
	asideLog = "log"
	// asideImporting protects the stored part of a conversation until all of it is stored. If an
	// import is interrupted, the next one deletes it.
	asideImporting = "importing"
)

// threadState is a thread while a conversation is loaded into it.
type threadState struct {
	record structure.Thread
	// was is the thread in the store, nil if it is new.
	was     *structure.Thread
	existed bool // before this import
	added   bool // in the store, or in a commit in progress
	// own are the thread's messages, in the store and in commits in progress. keys are the keys of
	// those in the store by span, for a thread that existed.
	own  map[messageKey]place
	keys map[structure.SpanRef]messageKey
	// says maps the saidKey of messages in the store to their keys.
	says map[messageKey]messageKey
	// base are the messages of the thread that this one was forked from.
	base     map[messageKey]place
	contexts []*contextState
	// main is the context of the main branch, zero if it was deleted.
	main structure.ContextID
	// ends are the last places of runs that may be continued.
	ends map[structure.RunID]uint64
	// begun are the parents of the runs that this import began in the thread.
	begun map[structure.RunID]structure.SpanRef
	// grown are the runs with new spans since the last commit. held are contexts that protect runs
	// until the conversation is complete: then they become branches or are deleted.
	grown map[structure.RunID]bool
	held  map[structure.RunID]write.Context
	// stale are such contexts left by an interrupted import.
	stale []structure.ContextID
}

// contextState is a context of the thread being loaded.
type contextState struct {
	write.Context
	branch string // empty for none
	aside  string
	key    messageKey // of the message at its tip
	stored bool
	old    structure.SpanRef // its tip in the store
	taken  bool              // assigned to a head
	dirty  bool
	// was is the context of a branch in the store, if it has metadata. metadata is new metadata, nil if it stays.
	was      *structure.Context
	metadata []byte
}

// archiveState is stored in a thread's metadata. With it, an import distinguishes newer exports
// from older ones, and changes of the archive from changes of others.
type archiveState struct {
	Format string `json:"format"`
	// Title and Model are those of the archive, Metadata is a checksum.
	Title    string `json:"title,omitempty"`
	Model    string `json:"model,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	// Updated is in Unix milliseconds; Current is a prefix of a messageKey.
	Updated    int64  `json:"updated,omitempty"`
	Current    string `json:"current,omitempty"`
	ForkedFrom string `json:"forkedFrom,omitempty"`
	// Seen are checksums of earlier states: importing an old archive again does not revert a newer
	// one.
	Seen []string `json:"seen,omitempty"`
}

// maxSeen limits the remembered states.
const maxSeen = 8

// sum returns a checksum of the state.
func (s archiveState) sum() string {
	s.Seen = nil
	b, _ := json.Marshal(s)
	return checksum(b)
}

// archiveKey is the key of the archiveState in a thread's metadata.
const archiveKey = "_archive"

// begin looks up the thread of a conversation.
func (l *loader) begin(st *loading) (*threadState, error) {
	id := write.SourceThread(st.header.SourceID)
	if l.touched[id] {
		if err := l.settle(); err != nil {
			return nil, err
		}
	}
	t := &threadState{
		ends: make(map[structure.RunID]uint64, 2), begun: make(map[structure.RunID]structure.SpanRef, 2),
		grown: make(map[structure.RunID]bool, 2), held: make(map[structure.RunID]write.Context),
		own: make(map[messageKey]place),
	}
	was, err := l.engine.Thread(l.ctx, id)
	switch {
	case errors.Is(err, lineage.ErrNotFound):
		if err := l.newThread(st, t); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	default:
		t.record, t.was, t.existed, t.added = *was, was, true, true
		t.record.UserID = firstOf(was.UserID, l.userOf(st))
		if err := l.existing(t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// newThread prepares a thread for a conversation. Nothing is in the batch yet.
func (l *loader) newThread(st *loading, t *threadState) error {
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
	is := &t.record
	is.ID, is.SourceID, is.UserID, is.CreatedAt, is.Active = main.Thread, st.header.SourceID, l.userOf(st), created, main.ID
	if st.header.ForkedFrom != "" {
		from, err := l.base(t, st.header.ForkedFrom)
		if err != nil {
			return err
		}
		if from != nil {
			main.Parent = from.Active
		}
	}
	return nil
}

// addThread adds a new thread to the current commit, without contexts: the start of its main branch
// is only known at the end.
func (l *loader) addThread(t *threadState) {
	if t.added {
		return
	}
	t.added = true
	is := l.next.NewThread(write.Thread{SourceID: t.record.SourceID, UserID: t.record.UserID, CreatedAt: t.record.CreatedAt, UpdatedAt: t.record.CreatedAt})
	t.record.Incarnation, t.record.UpdatedAt = is.Incarnation, is.UpdatedAt
	l.next.added.conversations++
}

// userOf returns the user of a conversation.
func (l *loader) userOf(st *loading) string { return firstOf(st.header.UserID, l.options.UserID) }

// existing reads the contexts and histories of a thread.
func (l *loader) existing(t *threadState) error {
	names := make(map[structure.ContextID]string)
	for b, err := range l.engine.Branches(l.ctx, t.record.ID, "", "") {
		if err != nil {
			return err
		}
		names[b.Context] = b.Name
		if b.Name == lineage.MainBranch {
			t.main = b.Context
		}
	}
	t.keys, t.says = make(map[structure.SpanRef]messageKey), make(map[messageKey]messageKey)
	for c, err := range l.engine.Contexts(l.ctx, t.record.ID, structure.ContextID{}) {
		if err != nil {
			return err
		}
		var meta struct {
			Aside string `json:"aside"`
		}
		_ = json.Unmarshal(c.Metadata, &meta) // others may have set it
		if err := l.histories(t.own, t.says, t.keys, &t.record, c.Tip); err != nil {
			return err
		}
		if meta.Aside == asideImporting {
			t.stale = append(t.stale, c.ID)
			continue
		}
		is := &contextState{
			Context: write.Context{ID: c.ID, Tip: c.Tip}, branch: names[c.ID], aside: meta.Aside, key: t.keys[c.Tip], stored: true, old: c.Tip,
		}
		if is.branch != "" && len(c.Metadata) > 0 {
			own := c.Context
			is.was = &own
		}
		t.contexts = append(t.contexts, is)
	}
	return nil
}

// hold completes a commit with a part of a conversation: the thread gets its main branch, and
// contexts protect the stored part from collection.
func (l *loader) hold(t *threadState) {
	if !t.added {
		return
	}
	if t.was == nil {
		main := t.contexts[0]
		l.next.NewContext(main.Context)
		l.next.Branch(&t.record, main.branch, "", main.ID, main.CreatedAt)
		t.was = l.next.StateThread(t.record)
		main.stored = true
	}
	l.touched[t.record.ID] = true
	for run := range t.grown {
		tip := structure.SpanRef{Run: run, Seq: t.ends[run]}
		if c, held := t.held[run]; held {
			l.next.Point(c.ID, tip)
			continue
		}
		c := write.Context{Thread: t.record.ID, Parent: t.main, At: t.begun[run], Tip: tip, Metadata: asideMetadata(asideImporting)}
		c.ID = l.next.NewContext(c).ID
		t.held[run] = c
	}
	clear(t.grown)
}

func asideMetadata(aside string) []byte {
	b, _ := json.Marshal(map[string]string{"aside": aside})
	return b
}

func checksum(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(b)), 16)
}
