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

// Asides that imports make.
const (
	// asideLog holds what an archive has beside messages: events, snapshots.
	asideLog = "log"
	// asideImporting holds on to what is in the store of a conversation before all of
	// it is. What an import that ended early left of these, the next takes away.
	asideImporting = "importing"
)

// threadState is a thread while a conversation is loaded into it.
type threadState struct {
	record structure.Thread
	// was is the thread as the store has it, nil when it has it not.
	was     *structure.Thread
	existed bool // before this import came to it
	added   bool // it is in the store, or in a commit on its way there
	// own are the messages of the thread, in the store and on their way there; keys are
	// those of the store by span, for a thread that existed.
	own  map[messageKey]place
	keys map[structure.SpanRef]messageKey
	// says are the keys of those of the store by what they say.
	says map[messageKey]messageKey
	// base are the messages of the thread that this one was forked from.
	base     map[messageKey]place
	contexts []*contextState
	// main is the context of the main branch, zero if that was deleted.
	main structure.ContextID
	// ends are the last places of runs that may be continued.
	ends map[structure.RunID]uint64
	// begun are the parents of the runs that this import began in the thread.
	begun map[structure.RunID]structure.SpanRef
	// grown are the runs that got spans since the last commit. held are contexts that keep
	// runs alive until the conversation is whole: then they become branches, or are deleted.
	grown map[structure.RunID]bool
	held  map[structure.RunID]write.Context
	// stale are such contexts that an import left that ended early.
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
	taken  bool              // a head was found to be where it stands
	dirty  bool
}

// archiveState is what an import leaves in a thread's metadata, to tell a newer
// export from an older one, and what the archive changed from what others did.
type archiveState struct {
	Format string `json:"format"`
	// Title and Model are the archive's, Metadata a checksum of it.
	Title    string `json:"title,omitempty"`
	Model    string `json:"model,omitempty"`
	Metadata string `json:"metadata,omitempty"`
	// Updated is in Unix milliseconds; Current the beginning of a messageKey.
	Updated    int64  `json:"updated,omitempty"`
	Current    string `json:"current,omitempty"`
	ForkedFrom string `json:"forkedFrom,omitempty"`
	// Seen are checksums of earlier states: an archive that comes again does not undo
	// what a newer one said.
	Seen []string `json:"seen,omitempty"`
}

// maxSeen is how many earlier states are remembered.
const maxSeen = 8

// sum returns a checksum of what an archive said.
func (s archiveState) sum() string {
	s.Seen = nil
	b, _ := json.Marshal(s)
	return checksum(b)
}

// archiveKey is where a thread's metadata has the archiveState.
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

// newThread begins a thread for a conversation. Nothing of it is in the batch yet.
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

// addThread adds a new thread to the commit at hand, without contexts: where its main
// branch begins is not known before the end.
func (l *loader) addThread(t *threadState) {
	if t.added {
		return
	}
	t.added = true
	is := l.next.NewThread(write.Thread{SourceID: t.record.SourceID, UserID: t.record.UserID, CreatedAt: t.record.CreatedAt, UpdatedAt: t.record.CreatedAt})
	t.record.Incarnation, t.record.UpdatedAt = is.Incarnation, is.UpdatedAt
	l.next.added.conversations++
}

// userOf returns whose a conversation is.
func (l *loader) userOf(st *loading) string { return firstOf(st.header.UserID, l.options.UserID) }

// existing reads the contexts of a thread and where its histories lead.
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
		_ = json.Unmarshal(c.Metadata, &meta) // it may be somebody else's
		if err := l.histories(t.own, t.says, t.keys, &t.record, c.Tip); err != nil {
			return err
		}
		if meta.Aside == asideImporting {
			t.stale = append(t.stale, c.ID)
			continue
		}
		t.contexts = append(t.contexts, &contextState{
			Context: write.Context{ID: c.ID, Tip: c.Tip}, branch: names[c.ID], aside: meta.Aside, key: t.keys[c.Tip], stored: true, old: c.Tip,
		})
	}
	return nil
}

// hold completes the commit at hand, which has a part of a conversation. From then on the
// thread has its main branch, and contexts keep what was stored from being collected.
func (l *loader) hold(t *threadState) {
	if !t.added {
		return
	}
	if t.was == nil {
		main := t.contexts[0]
		l.next.NewContext(main.Context)
		l.next.Branch(t.record.ID, main.branch, "", main.ID, main.CreatedAt)
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
