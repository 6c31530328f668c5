package embedded

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/internal/embedded/collect"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
)

// errStopped ends a verification whose caller stopped iterating.
var errStopped = errors.New("stopped")

// verifier is a verification: what it has found so far, and to whom it reports.
type verifier struct {
	engine *Engine
	ctx    context.Context
	opt    backend.VerifyOptions
	yield  func(backend.Finding, error) bool

	done, total int64
	damaged     bool // the journal is damaged, so it cannot be compared
	lost        bool // lookup tables of packs are damaged
	wrong       bool // index entries are wrong
	layer       *packLayer
	files       *journal.FileSet // of the state to compare: a collection may rewrite them meanwhile
	lookup      *journal.Check   // of the pack being read
	barrier     *collect.Barrier // of a pending collection
	pruned      *collect.Barrier // the same, once the index has no dead records
	last        backend.CorruptError
}

func (v *verifier) found(f backend.Finding) error {
	if !v.yield(f, nil) {
		return errStopped
	}
	return nil
}

func (v *verifier) progress(n int64) error {
	v.done += n
	if v.opt.Progress != nil {
		v.opt.Progress(v.done, max(v.done, v.total))
	}
	if v.ctx.Err() != nil {
		return context.Cause(v.ctx)
	}
	return nil
}
