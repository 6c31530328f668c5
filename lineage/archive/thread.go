package archive

import (
	"encoding/json"
	"errors"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
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
	// own are the messages of the thread, in the store and on their way there; keys are
	// those of the store by span, for a thread that existed.
	own  map[messageKey]place
	keys map[structure.SpanRef]messageKey
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
	held  map[structure.RunID]*structure.Context
	// stale are such contexts that an import left that ended early.
	stale []structure.ContextID
}

// contextState is a context of the thread being loaded.
type contextState struct {
	structure.Context
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
	id := lineage.SourceThread(st.header.SourceID)
	if l.touched[id] {
		if err := l.settle(); err != nil {
			return nil, err
		}
	}
	t := &threadState{
		ends: make(map[structure.RunID]uint64, 2), begun: make(map[structure.RunID]structure.SpanRef, 2),
		grown: make(map[structure.RunID]bool, 2), held: make(map[structure.RunID]*structure.Context),
		own: make(map[messageKey]place),
	}
	was, err := l.engine.Thread(l.ctx, id)
	switch {
	case errors.Is(err, lineage.ErrNotFound):
		created := st.header.Created
		if created.IsZero() {
			created = l.now()
		}
		t.record = structure.Thread{
			ID: id, SourceID: st.header.SourceID, UserID: l.userOf(st), CreatedAt: created, Incarnation: structure.NewIncarnation(),
		}
		t.contexts = []*contextState{{
			Context: structure.Context{ID: structure.NewID[structure.ContextID](), Thread: id, CreatedAt: created},
			branch:  lineage.MainBranch,
		}}
		if st.header.Model != "" {
			t.contexts[0].Overrides.Model = &st.header.Model
		}
		if st.header.ForkedFrom != "" {
			from, err := l.base(t, st.header.ForkedFrom)
			if err != nil {
				return nil, err
			}
			if from != nil {
				t.contexts[0].Parent = from.Active
			}
		}
		t.main = t.contexts[0].ID
		t.record.Active = t.main
	case err != nil:
		return nil, err
	default:
		t.record, t.was, t.existed = *was, was, true
		t.record.UserID = firstOf(was.UserID, l.userOf(st))
		if err := l.existing(t); err != nil {
			return nil, err
		}
	}
	return t, nil
}

func (l *loader) now() time.Time { return l.store.Now().UTC().Truncate(time.Millisecond) }

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
	t.keys = make(map[structure.SpanRef]messageKey)
	for c, err := range l.engine.Contexts(l.ctx, t.record.ID, structure.ContextID{}) {
		if err != nil {
			return err
		}
		var meta struct {
			Aside string `json:"aside"`
		}
		_ = json.Unmarshal(c.Metadata, &meta) // it may be somebody else's
		if err := l.histories(t.own, t.keys, &t.record, c.Tip); err != nil {
			return err
		}
		if meta.Aside == asideImporting {
			t.stale = append(t.stale, c.ID)
			continue
		}
		t.contexts = append(t.contexts, &contextState{
			Context: c.Context, branch: names[c.ID], aside: meta.Aside, key: t.keys[c.Tip], stored: true, old: c.Tip,
		})
	}
	return nil
}

// state makes a thread of the store, with its main branch, before any of its
// messages: for a conversation of several commits, whose ids are found in it.
func (l *loader) state(t *threadState) {
	if t.was != nil {
		return
	}
	l.next.options.Threads = append(l.next.options.Threads, backend.ExpectThread{ID: t.record.ID})
	main := t.contexts[0]
	first := t.record
	first.UpdatedAt = laterTime(first.CreatedAt, time.Time{})
	active := first.Active
	first.Active = structure.ContextID{}
	l.next.add(&first, 64)
	l.next.added.conversations++
	context := main.Context
	context.Tip, context.Base = structure.SpanRef{}, structure.SpanRef{}
	l.next.add(&context, 64)
	l.next.add(&structure.Branch{Thread: t.record.ID, Name: main.branch, Context: main.ID, CreatedAt: main.CreatedAt}, 32)
	whole := first
	whole.Active = active
	l.next.add(&whole, 64)
	t.was = &whole
	main.stored = true
	l.touched[t.record.ID] = true
}

// flushOpen sends the commit at hand on its way while a conversation is loaded.
func (l *loader) flushOpen(st *loading) error {
	t := st.thread
	l.state(t)
	for run := range t.grown {
		tip := structure.SpanRef{Run: run, Seq: t.ends[run]}
		if c, held := t.held[run]; held {
			l.next.add(&structure.Tip{Context: c.ID, Span: tip}, 32)
			continue
		}
		c := &structure.Context{
			ID: structure.NewID[structure.ContextID](), Thread: t.record.ID, Parent: t.main, Base: t.begun[run], Tip: tip, CreatedAt: l.now(),
			Metadata: asideMetadata(asideImporting),
		}
		l.next.add(c, 64)
		t.held[run] = c
	}
	clear(t.grown)
	return l.flush()
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
