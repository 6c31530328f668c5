package importer

import (
	"maps"
	"slices"

	"github.com/lineage-store/lineage/internal/place"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// loading is the state of a conversation being loaded.
type loading struct {
	// What the archive states of it, in all parts so far.
	header archive.Conversation // without nodes
	format string
	bare   bool // archive.Format.Bare
	// derived is set if the source id is derived from the whole content of the conversation, so
	// that an equal id means equal content.
	derived bool
	// again is set if the archive had an earlier part of the conversation. If this part has no Current, the earlier
	// one determines the current node.
	again bool
	runOf string // the title of an agent's run, if the file has only this run

	// Its messages.
	nodes   nodeList
	runs    []structure.RunID // of the nodes; the first is none
	byID    map[archive.IDHash]int32
	asides  []string // names; 0 is the conversation itself
	asideOf map[string]int32
	named   []namedHead // the nodes with named branches
	last    []int32     // by aside, the last node, -1 for none
	leaves  leaves
	round   uint32 // number of times that contexts were matched

	// Its thread.
	thread *threadState
	// leftOut is set if the thread was deleted during the import, or is another conversation. The rest of the conversation
	// is left out. compared is set after it was compared with the thread: see refuseNamesake.
	leftOut  bool
	compared bool
	// sought is set after the conversation was searched for an answer that shows what it was copied from. copiedFrom
	// is the thread found, zero for none. copies is set if lines have other ids and times there.
	sought     bool
	copiedFrom structure.ThreadID
	copies     bool
	// grew is set if a node was added since resume. state is the checksum of the archive's state that finish leaves
	// in the thread. settled is the state that a growing input found in the thread at the start, or left there in its
	// last round.
	grew           bool
	state, settled string
}

// ref returns the span of a node, zero if it has none yet.
func (st *loading) ref(n loaded) structure.SpanRef {
	return structure.SpanRef{Run: st.runs[n.run], Seq: n.seq}
}

// setRef sets the span of a node. Most spans are in the run of their parent, or of the span before.
func (st *loading) setRef(node int32, ref structure.SpanRef) {
	n := st.nodes.change(node)
	n.seq, n.run = ref.Seq, int32(len(st.runs)-1)
	if n.parent >= 0 && st.runs[st.nodes.at(n.parent).run] == ref.Run {
		n.run = st.nodes.at(n.parent).run
	} else if st.runs[n.run] != ref.Run {
		n.run++
		st.runs = append(st.runs, ref.Run)
	}
}

// node returns the first node with an id.
func (st *loading) node(id string) (int32, bool) {
	i, ok := st.byID[archive.HashID(id)]
	return i, ok
}

// identify gives a node an id, unless one has it, and reports whether the node has it. There may be as many ids as given at first.
func (st *loading) identify(id string, node int32, ids int) bool {
	if st.byID == nil {
		st.byID = make(map[archive.IDHash]int32, ids)
	}
	key := archive.HashID(id)
	_, taken := st.byID[key]
	if !taken {
		st.byID[key] = node
	}
	return !taken
}

// threadState is the state of a thread while a conversation is loaded into it.
type threadState struct {
	record structure.Thread
	// was is the thread in the store, nil if it is new. archived is what the last import stored in its metadata.
	was      *structure.Thread
	archived archiveState
	existed  bool // before this import
	stage    stage
	// created is set if, as far as known, the thread has only what this import added.
	created bool
	// copies is loading.copies.
	copies bool
	// base are spans of other threads. For a thread in the store, they are in the histories of its contexts. For a new
	// fork, they are the histories of the thread that it was forked from.
	base backend.Reach
	// outline has the contexts in the store; it is nil if there are none. contexts are the new ones and those that were
	// taken from the outline. known has the latter by their ids.
	outline  *outline
	contexts []*contextState
	known    map[structure.ContextID]*contextState
	// main is the context of the main branch, zero if it was deleted.
	main structure.ContextID
	// grown are the runs with new spans since the last commit. held are contexts that protect runs until the
	// conversation is complete, when they become branches or are deleted.
	grown map[structure.RunID]bool
	ends  map[structure.RunID]uint64 // by run that this import continued, its last place
	held  map[structure.RunID]structure.Context
	// reused are contexts of interrupted imports that became branches.
	reused map[structure.ContextID]bool
}

// stage tells whether a thread is in the store.
type stage uint8

const (
	absent   stage = iota
	inCommit       // in the current commit
	inStore
)

// contextState is the state of a context of the thread.
type contextState struct {
	write.Context
	branch string // empty for none
	aside  string
	stored bool
	old    structure.SpanRef // its tip in the store
	taken  bool              // assigned to a head
	dirty  bool
	// was is the record in the store of a branch's context, if it has metadata. metadata is its new metadata, nil if
	// unchanged.
	was      *structure.Context
	metadata []byte
}

// head is a node that a context should point to. Its name is empty if the branch gets an automatic one.
type head struct {
	namedHead
	current bool
	context *contextState
	done    bool
}

type namedHead struct {
	node         int32
	name, parent string
	metadata     []byte
}

// threadID returns the id of the thread of the conversation.
func (st *loading) threadID() structure.ThreadID {
	if c := st.header.Continues; c != nil {
		return c.Thread
	}
	return write.SourceThread(st.header.SourceID)
}

// isEmpty reports whether the archive has a branch without messages.
func (st *loading) isEmpty(name string) bool {
	return slices.ContainsFunc(st.header.Empty, func(b archive.EmptyBranch) bool { return b.Name == name })
}

func (st *loading) aside(name string) int32 {
	if i, known := st.asideOf[name]; known {
		return i
	}
	i := int32(len(st.asides))
	st.asides, st.asideOf[name] = append(st.asides, name), i
	st.last = append(st.last, -1)
	return i
}

func (st *loading) refOf(node int32) structure.SpanRef {
	if node < 0 {
		return structure.SpanRef{}
	}
	return st.ref(st.nodes.at(node))
}

// older reports whether the archive's version of the conversation is older than the store's.
func (st *loading) older() bool {
	t := st.thread
	return t.existed && st.header.Continues == nil && !st.header.Updated.IsZero() && st.header.Updated.UnixMilli() < t.archived.Updated
}

// follows reports whether a node is the message or a descendant of it.
func (st *loading) follows(node int32, message structure.SpanRef) bool {
	for ; node >= 0; node = st.nodes.at(node).parent {
		if st.refOf(node) == message {
			return true
		}
	}
	return false
}

// commit records that everything of the thread so far is in the store.
func (t *threadState) commit(p *place.Placer) {
	if t.stage == inCommit {
		t.stage = inStore
	}
	for run := range t.grown {
		t.ends[run] = p.End(run)
	}
	clear(t.grown)
}

// stale returns the contexts of interrupted imports.
func (t *threadState) stale() []structure.ContextID {
	if t.outline == nil {
		return nil
	}
	return slices.SortedFunc(maps.Keys(t.outline.importing), structure.ContextID.Compare)
}

// sharesOthers reports whether histories of the thread contain spans of other threads.
func (t *threadState) sharesOthers() bool {
	for _, e := range t.base {
		if e.Run.Home != t.record.Home() {
			return true
		}
	}
	return false
}

func (c *contextState) moveTo(tip structure.SpanRef) {
	if c.Tip != tip {
		c.Tip, c.dirty = tip, true
	}
}

func firstOf(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}
