package judge

import (
	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Case is a commit to judge, with its number and time.
type Case struct {
	Commit *structure.Commit
	View   View
	// Replay is set for a commit that was accepted before: nothing is refused, and only
	// what the effects need is looked up. Collected subjects may be missing.
	Replay bool
	// WholeTrees requires all chunks of a body. Otherwise the root of its tree is enough,
	// because it is stored after everything below it.
	WholeTrees bool
}

// state is the state after the records of a commit that were judged so far: the view, changed by their effects. It answers
// what is there, and requires what must be there.
type state struct {
	Case
	effects Effects
}

func (s *state) threadChange(id structure.ThreadID) (Change[*structure.Thread], error) {
	if change, ok := s.effects.Threads.Get(id); ok {
		return change, nil
	}
	was, err := s.View.Thread(id)
	return Change[*structure.Thread]{was, was}, err
}

func (s *state) requireThread(id structure.ThreadID) error {
	if s.Replay {
		return nil
	}
	change, err := s.threadChange(id)
	return required(change.Now != nil, err, "thread", id)
}

// contextNow returns a context as last stated, or nil. Its current tip is tipOf.
func (s *state) contextNow(id structure.ContextID) (*backend.Context, error) {
	if change, ok := s.effects.Contexts.Get(id); ok {
		return change.Stated, nil
	}
	return s.View.Context(id)
}

// tipOf returns the tip of a context.
func (s *state) tipOf(c *backend.Context) Tip {
	if tip, ok := s.effects.Tips.Get(c.ID); ok {
		return tip
	}
	return Tip{Span: c.Tip, Commit: c.Moved, At: c.MovedAt}
}

func (s *state) requireContext(id structure.ContextID) error {
	if s.Replay {
		return nil
	}
	c, err := s.contextNow(id)
	return required(c != nil, err, "context", id)
}

// remnantNow returns a remnant, or nil.
func (s *state) remnantNow(id structure.ContextID) (*structure.Remnant, error) {
	if change, ok := s.effects.Remnants.Get(id); ok {
		return change.Now, nil
	}
	return s.View.Remnant(id)
}

// exists reports whether there is a context or a remnant.
func (s *state) exists(id structure.ContextID) (bool, error) {
	if c, err := s.contextNow(id); c != nil || err != nil {
		return c != nil, err
	}
	r, err := s.remnantNow(id)
	return r != nil, err
}

func (s *state) runInfo(id structure.RunID) (structure.RunInfo, bool, error) {
	if info, ok := s.effects.Runs.Get(id); ok {
		return info, true, nil
	}
	return s.View.Run(id)
}

// requireSpan refuses the commit unless the span exists. The empty position always exists.
func (s *state) requireSpan(r structure.SpanRef) error {
	if s.Replay || r.IsZero() {
		return nil
	}
	if end, ok := s.effects.Ends.Get(r.Run); ok && r.Seq != 0 && r.Seq <= end.Seq {
		return nil
	}
	there, err := s.View.HasSpan(r)
	return required(there, err, "span", r)
}

// digest returns the digest of the history that ends at a span.
func (s *state) digest(r structure.SpanRef) (structure.Digest, error) {
	if own, ok := s.effects.Spans.Get(r); ok {
		return own.Digest, nil
	}
	return s.View.Digest(r)
}

func (s *state) hasSet(id structure.SpanSetID) (bool, error) {
	if _, ok := s.effects.Sets.Get(id); ok {
		return true, nil
	}
	return s.View.HasSet(id)
}

func (s *state) requireSet(id structure.SpanSetID) error {
	if s.Replay {
		return nil
	}
	there, err := s.hasSet(id)
	return required(there, err, "span set", id)
}

// size returns the size of a block, erased or not.
func (s *state) size(id content.ID) (size int64, known bool, err error) {
	if own, ok := s.effects.Blocks.Get(id); ok {
		return own.Size, true, nil
	}
	return s.View.Block(id)
}

func (s *state) requireBlock(id content.ID) error {
	if s.Replay {
		return nil
	}
	_, known, err := s.size(id)
	return required(known, err, "block", id)
}

func (s *state) erased(id content.ID) (bool, error) {
	if erased, ok := s.effects.Erased.Get(id); ok {
		return erased, nil
	}
	return s.View.Erased(id)
}
