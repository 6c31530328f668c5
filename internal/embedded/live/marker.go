package live

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// View is the state of a store.
type View struct {
	*read.View
	// History yields the commits from one number up to another.
	History func(from, until uint64) iter.Seq2[Commit, error]
}

// Commit is a commit with its size in bytes.
type Commit struct {
	*structure.Commit
	Size int64
}

// Marker finds what is live: first the reachable histories from the index, then their content in one pass over the
// journal. Then it follows the commits that arrived in the meantime, the last of them with writes blocked.
type Marker struct {
	// Live has what was found so far.
	Live *Set
	// Revived is set when a followed commit made something live that was dead before and that the commit did not
	// bring itself.
	Revived bool

	ctx  context.Context
	view View // of the state that roots were read from
	opt  backend.CollectOptions

	// inherits is set if any context has values. inherited has the positions at which forks inherit values, as far as these were
	// marked.
	inherits  bool
	inherited map[inherited]struct{}
	runs      map[structure.RunID]structure.RunInfo // cached

	// lives has what the scan found about live contexts, including remnants. members has them by thread.
	lives   map[structure.ContextID]life
	members map[structure.ThreadID][]structure.ContextID

	// trees has the roots of chunked bodies; after the scan, the trees of live ones are
	// walked.
	trees   map[content.ID]content.Root
	scanned bool
	// revived has spans that were found live after the scan.
	revived   []revival
	following bool
	arrived   bool // the span being marked is new
	// young and youngChunks were stored within KeepUnused. usedByDead has those that something dead uses.
	young, youngChunks, usedByDead hashSet
}

// NewMarker returns a marker for a state.
func NewMarker(ctx context.Context, v View, o backend.CollectOptions) *Marker {
	return &Marker{
		ctx: ctx, view: v, Live: newSet(), opt: o,
		lives: make(map[structure.ContextID]life), members: make(map[structure.ThreadID][]structure.ContextID),
		trees: make(map[content.ID]content.Root), inherited: make(map[inherited]struct{}), runs: make(map[structure.RunID]structure.RunInfo),
	}
}

// inherited is a context and the position as of which its values are read.
type inherited struct {
	context structure.ContextID
	at      structure.SpanRef
}

// life is the last context with an id, as far as the journal was scanned.
type life struct {
	thread  structure.ThreadID
	last    uint64 // commit with its last record or its deletion
	deleted bool   // it was deleted
	left    bool   // its last record is a remnant
}

// revival is the spans of a run after one place, up to another.
type revival struct {
	run         structure.RunID
	after, last uint64
}
