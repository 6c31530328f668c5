package write

import (
	"context"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// refuse returns the error with which the engine would refuse a record at the commit, so that the call that
// causes it fails. The engine checks again.
func (s *Stage) refuse(ctx context.Context, r structure.Record) error {
	switch r := r.(type) {
	case *structure.Branch:
		stored, err := s.Branch(ctx, r.Thread, r.Name)
		if err == nil && stored.Context != r.Context {
			return s.taken("branch", r.Name)
		}
		if err != nil && !isNotFound(err) {
			return err
		}
		return requireOwn(s, r.SourceID, r.Name, s.BranchesBySource(ctx, r.SourceID, r.Thread), nameOfBranch)
	case *structure.Checkpoint:
		if err := s.requireSpan(ctx, r.Span); err != nil {
			return err
		}
		stored, err := s.Checkpoint(ctx, r.Thread, r.Name)
		if err == nil && stored.ID != r.ID {
			return s.taken("checkpoint", r.Name)
		}
		if err != nil && !isNotFound(err) {
			return err
		}
		return requireOwn(s, r.SourceID, r.Name, s.CheckpointsBySource(ctx, r.SourceID, r.Thread), nameOfCheckpoint)
	case *structure.Context:
		return s.requireSpan(ctx, r.Tip)
	case *structure.Tip:
		return s.requireSpan(ctx, r.Span)
	case *structure.Deletion:
		return s.refuseDeletion(ctx, r)
	}
	return nil
}

// requireOwn refuses a source id that another name has.
func requireOwn[T any](s *Stage, sourceID, name string, found iter.Seq2[*T, error], nameOf func(*T) string) error {
	if sourceID == "" {
		return nil
	}
	for other, err := range found {
		if err == nil && nameOf(other) != name {
			err = s.taken("source id", sourceID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) refuseDeletion(ctx context.Context, d *structure.Deletion) (err error) {
	switch d.Subject {
	case structure.KindBlock:
		return outside("erasing content")
	case structure.KindThread:
		_, err = s.Thread(ctx, d.Thread)
	case structure.KindContext:
		_, err = s.Context(ctx, d.Context)
	case structure.KindBranch:
		_, err = s.Branch(ctx, d.Thread, d.Name)
	case structure.KindCheckpoint:
		_, err = s.Checkpoint(ctx, d.Thread, d.Name)
	}
	return err
}

func (s *Stage) taken(subject, id string) error {
	return &backend.SubjectError{Subject: subject, ID: fmt.Sprintf("%.80q", id), Err: backend.ErrExists}
}

// requireSpan refuses a span that does not exist. Zero is valid: the start of a history.
func (s *Stage) requireSpan(ctx context.Context, at structure.SpanRef) error {
	if at.IsZero() {
		return nil
	}
	last, err := s.Last(ctx, at.Run)
	if err == nil && at.Seq > last.Seq || isNotFound(err) {
		return missing("span", at.String())
	}
	return err
}

// requireFree refuses a usage if another one in its home has its source id and lookup.
func (s *Stage) requireFree(ctx context.Context, u *structure.Usage, home structure.Home) error {
	if home.Thread.IsZero() {
		return nil
	}
	all, err := s.found(ctx, u.SourceID, home.Thread)
	for _, f := range all {
		if f.Lookup == u.Lookup {
			return s.taken("source id", u.SourceID)
		}
	}
	return err
}
