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
	// asideOriginals holds what is a message's own in a history that is shared: see
	// original.
	asideOriginals = "originals"
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
	alias   func(sourceID string) structure.Alias
	// own are the histories of the thread, for one that existed: a history can be
	// there more than once, its own and one that it shares.
	own      map[digestKey][]place
	contexts []*contextState
	// main is the context of the main branch, zero if that was deleted.
	main structure.ContextID
	// ends are the last places of runs that may be continued.
	ends map[structure.RunID]uint64
	// grown are the runs that got spans since the last commit; held are the contexts
	// that hold on to runs meanwhile.
	grown map[structure.RunID]bool
	held  map[structure.RunID]structure.ContextID
	// stale are such contexts that an import left that ended early.
	stale []structure.ContextID
}

// contextState is a context of the thread being loaded.
type contextState struct {
	structure.Context
	branch string // empty for none
	aside  string
	digest digestKey // of its history
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
	// Updated is in Unix milliseconds; Current the beginning of a digest.
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
		ends: make(map[structure.RunID]uint64, 2), grown: make(map[structure.RunID]bool, 2), held: make(map[structure.RunID]structure.ContextID),
	}
	was, err := l.engine.Thread(l.ctx, id)
	switch {
	case errors.Is(err, lineage.ErrNotFound):
		created := st.header.Created
		if created.IsZero() {
			created = l.now()
		}
		t.record = structure.Thread{ID: id, SourceID: st.header.SourceID, CreatedAt: created, Incarnation: structure.NewIncarnation()}
		t.contexts = []*contextState{{
			Context: structure.Context{ID: structure.NewID[structure.ContextID](), Thread: id, CreatedAt: created},
			branch:  lineage.MainBranch,
		}}
		if st.header.Model != "" {
			t.contexts[0].Overrides.Model = &st.header.Model
		}
		if st.header.ForkedFrom != "" {
			if t.contexts[0].Parent, err = l.active(l.options.Prefix + st.header.ForkedFrom); err != nil {
				return nil, err
			}
		}
		t.main = t.contexts[0].ID
		t.record.Active = t.main
	case err != nil:
		return nil, err
	default:
		t.record, t.was, t.existed = *was, was, true
		if err := l.existing(t); err != nil {
			return nil, err
		}
	}
	t.alias = lineage.Aliases(&t.record)
	return t, nil
}

// active returns the context of the active branch of a thread, zero if there is no
// such thread.
func (l *loader) active(sourceID string) (structure.ContextID, error) {
	id := lineage.SourceThread(sourceID)
	if l.touched[id] {
		if err := l.settle(); err != nil {
			return structure.ContextID{}, err
		}
	}
	t, err := l.engine.Thread(l.ctx, id)
	if errors.Is(err, lineage.ErrNotFound) {
		return structure.ContextID{}, nil
	}
	if err != nil {
		return structure.ContextID{}, err
	}
	return t.Active, nil
}

func (l *loader) now() time.Time { return l.store.Now().UTC().Truncate(time.Millisecond) }

// existing reads the contexts of a thread and where its histories lead.
func (l *loader) existing(t *threadState) error {
	names := make(map[structure.ContextID]string)
	for b, err := range l.engine.Branches(l.ctx, t.record.ID) {
		if err != nil {
			return err
		}
		names[b.Context] = b.Name
		if b.Name == lineage.MainBranch {
			t.main = b.Context
		}
	}
	t.own = make(map[digestKey][]place)
	ends := make(map[structure.SpanRef]structure.Digest)
	for c, err := range l.engine.Contexts(l.ctx, t.record.ID) {
		if err != nil {
			return err
		}
		var meta struct {
			Aside string `json:"aside"`
		}
		_ = json.Unmarshal(c.Metadata, &meta) // it may be somebody else's
		if err := l.histories(t, c.Tip, ends); err != nil {
			return err
		}
		if meta.Aside == asideImporting {
			t.stale = append(t.stale, c.ID)
			continue
		}
		t.contexts = append(t.contexts, &contextState{
			Context: c.Context, branch: names[c.ID], aside: meta.Aside, digest: keyOf(ends[c.Tip]), stored: true, old: c.Tip,
		})
	}
	return nil
}

// histories adds the history that ends at a tip to what is known of a thread. It
// reads what no history before it had.
func (l *loader) histories(t *threadState, tip structure.SpanRef, ends map[structure.SpanRef]structure.Digest) error {
	if tip.IsZero() {
		return nil
	}
	if _, known := ends[tip]; known {
		return nil
	}
	// Go back to the last span that is known already, and no further.
	var from uint64 = 1
	var digest structure.Digest
	var before structure.SpanRef
	for at := tip; !at.IsZero() && before.IsZero(); {
		run, err := l.engine.Run(l.ctx, at.Run)
		if err != nil {
			return err
		}
		for ; at.Seq > 0; at.Seq-- {
			if d, known := ends[at]; known {
				from, digest, before = run.Position(at.Seq)+1, d, at
				break
			}
		}
		at = run.Parent
	}
	for step, err := range l.engine.Path(l.ctx, tip, structure.Window{From: from}, backend.PathOptions{}) {
		if err != nil {
			return err
		}
		if !before.IsZero() {
			at := t.own[keyOf(digest)]
			for i := range at {
				at[i].inner = true
			}
		}
		digest = structure.NextDigest(digest, step.Span.Usages)
		at := placeOf(step.Span)
		at.after = afterOf(before)
		before = step.Span.Ref
		if others := t.own[keyOf(digest)]; len(others) > 0 {
			at.inner = others[0].inner
		}
		t.own[keyOf(digest)] = append(t.own[keyOf(digest)], at)
		ends[before] = digest
	}
	return nil
}

// owned returns the span of the thread that has a message's history, the one that
// is most like it if there are several.
func (t *threadState) owned(digest structure.Digest, own identity) (place, bool) {
	places := t.own[keyOf(digest)]
	for _, at := range places {
		if !own.differs(at.own) {
			return at, true
		}
	}
	if len(places) == 0 {
		return place{}, false
	}
	return places[0], true
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
	first.UpdatedAt = l.now()
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
		if id, held := t.held[run]; held {
			l.next.add(&structure.Tip{Context: id, Span: tip}, 32)
			continue
		}
		c := &structure.Context{
			ID: structure.NewID[structure.ContextID](), Thread: t.record.ID, Parent: t.main, Base: tip, Tip: tip, CreatedAt: l.now(),
			Metadata: asideMetadata(asideImporting),
		}
		l.next.add(c, 64)
		t.held[run] = c.ID
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
