package write

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Apply implements backend.Engine.
func (s *Stage) Apply(ctx context.Context, c *structure.Commit, o backend.Options) (backend.Receipt, error) {
	if err := s.check(ctx, &o); err != nil {
		return backend.Receipt{}, err
	}
	blocks := make(map[content.ID]*structure.Block) // a usage may come before the block that it leaves its origin to
	for _, r := range c.Records {
		if b, ok := r.(*structure.Block); ok && blocks[b.ID] == nil {
			blocks[b.ID] = b
		}
	}
	before := len(s.batch.commit.Records)
	s.undo = s.undo[:0]
	for _, r := range c.Records {
		if b, ok := r.(*structure.Block); ok && s.blocks[b.ID] != nil {
			continue
		}
		err := s.refuse(ctx, r)
		if err == nil {
			err = s.stage(ctx, r, blocks)
		}
		if err != nil {
			for _, undo := range slices.Backward(s.undo) {
				undo()
			}
			s.batch.truncate(before)
			return backend.Receipt{}, err
		}
	}
	return backend.Receipt{}, nil
}

// put sets an entry of a map. A refused commit is undone.
func put[K comparable, V any](s *Stage, m map[K]V, key K, value V) {
	was, had := m[key]
	s.undo = append(s.undo, func() {
		if delete(m, key); had {
			m[key] = was
		}
	})
	m[key] = value
}

// check compares the expectations of a commit with the stage.
func (s *Stage) check(ctx context.Context, o *backend.Options) error {
	for _, e := range o.Tips {
		now, err := s.Context(ctx, e.Context)
		if err != nil {
			return err
		}
		if now.Tip != e.Tip {
			return &backend.TipError{Context: e.Context, Expected: e.Tip, Actual: now.Tip}
		}
	}
	for _, e := range o.Threads {
		now, err := s.Thread(ctx, e.ID)
		if err := same("thread", e.ID.String(), now, e.Was, e.Was == nil, err); err != nil {
			return err
		}
	}
	for _, e := range o.Contexts {
		now, err := s.Context(ctx, e.ID)
		if err := same("context", e.ID.String(), &now.Context, e.Was, e.Was == nil, err); err != nil {
			return err
		}
	}
	for _, e := range o.Branches {
		now, err := s.Branch(ctx, e.Thread, e.Name)
		if err := same("branch", e.Name, now, e.Was, e.Was == nil, err); err != nil {
			return err
		}
	}
	for _, e := range o.Checkpoints {
		now, err := s.Checkpoint(ctx, e.Thread, e.Name)
		if err := same("checkpoint", e.Name, now, e.Was, e.Was == nil, err); err != nil {
			return err
		}
	}
	for _, e := range o.Values {
		now, err := s.Value(ctx, e.Key)
		if err != nil && !isNotFound(err) {
			return err
		}
		if now.Commit != e.Commit {
			return &backend.SubjectError{Subject: "value", ID: e.Key.Name(), Err: backend.ErrConflict, Detail: "it was changed"}
		}
	}
	for _, e := range o.Sources {
		for range s.Find(ctx, e.SourceID, e.Thread, backend.Found{}) {
			// The read adds the expectation to the batch.
		}
	}
	return s.alive()
}

// same compares the state that was read with the expected one. none means that it must not exist.
func same(subject, id string, now, was structure.Record, none bool, err error) error {
	switch missing := isNotFound(err); {
	case err != nil && !missing:
		return err
	case none && !missing:
		return &backend.SubjectError{Subject: subject, ID: id, Err: backend.ErrExists}
	case !none && (missing || !structure.Equal(now, was)):
		return &backend.SubjectError{Subject: subject, ID: id, Err: backend.ErrConflict, Detail: "it was changed"}
	}
	return nil
}

// stage adds a copy of a record to the batch and makes it visible to reads. blocks has the first block of each
// content of the same commit.
func (s *Stage) stage(ctx context.Context, r structure.Record, blocks map[content.ID]*structure.Block) error {
	switch r := r.(type) {
	case *structure.Thread:
		keep(s, s.threads, r.ID, r)
	case *structure.Context:
		own := owned(*r)
		c := backend.Context{Context: *own, MovedAt: s.batch.commit.Time.UnixMilli()}
		if was := s.contexts[r.ID]; was != nil {
			c.Moved, c.MovedAt = was.Moved, was.MovedAt
		}
		put(s, s.contexts, r.ID, &c)
		s.batch.add(own)
	case *structure.Remnant:
		keep(s, s.remnants, r.ID, r)
	case *structure.Run:
		depth, err := structure.Position(r.Parent, backend.Runs(ctx, s))
		if err != nil {
			return err
		}
		own := *r
		put(s, s.runs, r.ID, structure.RunInfo{Run: own, Depth: depth})
		s.batch.add(&own)
	case *structure.Span:
		return s.span(ctx, r, blocks)
	case *structure.Tip:
		c, err := s.Context(ctx, r.Context)
		if err != nil {
			return err
		}
		own := *r
		c.Tip, c.MovedAt = r.Span, s.batch.commit.Time.UnixMilli()
		put(s, s.contexts, r.Context, &c)
		s.batch.add(&own)
	case *structure.Branch:
		keep(s, s.branches, branchName{r.Thread, r.Name}, r)
	case *structure.Checkpoint:
		keep(s, s.checkpoints, checkpointName{r.Thread, r.Name}, r)
	case *structure.SpanSet:
		keep(s, s.sets, r.ID, r)
	case *structure.Reflog:
		own := owned(*r)
		put(s, s.moves, r.Context, append(s.moves[r.Context], own))
		s.batch.add(own)
	case *structure.Value:
		own := owned(*r)
		put(s, s.values, r.ValueKey, append(s.values[r.ValueKey], backend.Value{Value: *own}))
		s.batch.add(own)
	case *structure.Summary:
		s.batch.add(owned(*r))
	case *structure.Deletion:
		own := owned(*r)
		if err := s.deleted(ctx, own); err != nil {
			return err
		}
		s.batch.add(own)
	case *structure.Block:
		own := *r
		own.Body = bytes.Clone(r.Body)
		put(s, s.blocks, r.ID, &own)
		s.batch.add(&own)
	default:
		return fmt.Errorf("%v in a transaction: %w", r.Kind(), backend.ErrInvalid)
	}
	return nil
}

// keep adds a copy of a record to the batch and puts it into a map under a key.
func keep[K comparable, T any, P interface {
	*T
	structure.Record
}](s *Stage, m map[K]P, key K, r P) {
	own := owned[T, P](*r)
	put(s, m, key, own)
	s.batch.add(own)
}

// deleted makes a deletion visible to reads.
func (s *Stage) deleted(ctx context.Context, d *structure.Deletion) error {
	switch d.Subject {
	case structure.KindThread:
		return s.deletedThread(ctx, d.Thread)
	case structure.KindContext:
		c, err := s.Context(ctx, d.Context)
		if err == nil {
			s.deletedContext(&c)
		}
		return err
	case structure.KindBranch:
		put(s, s.branches, branchName{d.Thread, d.Name}, nil)
	case structure.KindCheckpoint:
		put(s, s.checkpoints, checkpointName{d.Thread, d.Name}, nil)
	}
	return nil
}

func (s *Stage) deletedContext(c *backend.Context) {
	put(s, s.contexts, c.ID, nil)
	put(s, s.remnants, c.ID, owned(*c.Remnant()))
}

// deletedThread makes the deletion of a thread, its names and its contexts visible to reads. The commit also
// deletes contexts that others add in the meantime.
func (s *Stage) deletedThread(ctx context.Context, id structure.ThreadID) error {
	for b, err := range s.Branches(ctx, id, "", "") {
		if err != nil {
			return err
		}
		put(s, s.branches, branchName{id, b.Name}, nil)
	}
	for c, err := range s.Checkpoints(ctx, id, "") {
		if err != nil {
			return err
		}
		put(s, s.checkpoints, checkpointName{id, c.Name}, nil)
	}
	for c, err := range s.Reader.Contexts(ctx, id, structure.ContextID{}) {
		if err != nil {
			return err
		}
		if _, changed := s.contexts[c.ID]; !changed {
			s.deletedContext(&c)
		}
	}
	for _, own := range s.contexts {
		if own != nil && own.Thread == id {
			s.deletedContext(own)
		}
	}
	put(s, s.threads, id, nil)
	return nil
}

// span adds a span, which must be the next of its run.
func (s *Stage) span(ctx context.Context, r *structure.Span, blocks map[content.ID]*structure.Block) error {
	run, own := s.runs[r.Ref.Run]
	if !own {
		var err error
		if run, err = s.Reader.Run(ctx, r.Ref.Run); err != nil {
			return err
		}
	}
	last, err := s.Last(ctx, r.Ref.Run)
	if err != nil {
		return err
	}
	if s.fresh && !own && len(s.spans[r.Ref.Run]) == 0 || r.Ref.Seq != last.Seq+1 {
		return &backend.SubjectError{Subject: "span", ID: r.Ref.String(), Err: backend.ErrConflict, Detail: "its run goes on elsewhere"}
	}
	span := &structure.Span{Ref: r.Ref, Set: r.Set, Usages: make([]structure.Usage, len(r.Usages))}
	for i := range r.Usages {
		u := &span.Usages[i]
		*u = r.Usages[i]
		u.CloneBytes()
		if u.Origin != nil {
			origin := *u.Origin
			u.Origin = &origin
		}
		if err := s.settle(ctx, u, blocks[u.Content]); err != nil {
			return err
		}
		if u.SourceID != "" && u.Lookup > 0 {
			if err := s.requireFree(ctx, u, run.Home); err != nil {
				return err
			}
			put(s, s.sources, u.SourceID, append(s.sources[u.SourceID], backend.Found{Home: run.Home, Lookup: u.Lookup, Span: r.Ref}))
		}
	}
	put(s, s.spans, r.Ref.Run, append(s.spans[r.Ref.Run], span))
	s.batch.add(span)
	return nil
}

// settle fills in the fields that a usage leaves to its block, if another block of the same content comes
// first in the transaction. left is the block of the usage's commit, or nil.
func (s *Stage) settle(ctx context.Context, u *structure.Usage, left *structure.Block) error {
	first := s.blocks[u.Content]
	if first == nil {
		return nil
	}
	if left == nil && first.Tree.Size == 0 && (u.Type == "" || u.Origin == nil) {
		// Without a block of its own the usage refers to content of the store.
		blocks, err := s.Reader.Blocks(ctx, []content.ID{u.Content})
		if err != nil {
			return nil
		}
		left = blocks[0]
	}
	if left == nil {
		return nil
	}
	if u.Type == "" && left.Type != first.Type {
		u.Type = left.Type
	}
	if u.Origin == nil && left.Origin != first.Origin {
		origin := left.Origin
		u.Origin = &origin
	}
	return nil
}
