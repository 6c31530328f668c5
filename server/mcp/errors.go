package mcp

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"github.com/lineage-store/lineage/internal/plain"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
)

// guarded runs a function for a client. A panic fails only this call.
func guarded[T any](s *Service, what string, run func() (T, error)) (result T, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.o.Logger.Error("panic", "tool", what, "panic", p, "stack", string(debug.Stack()))
			err = errInside
		}
	}()
	return run()
}

// errInside is what a client gets for errors that it can do nothing about.
var errInside = errors.New("the store could not answer; the log of the server says why")

// shownErrors are the errors whose text tells a client what is wrong with its request.
var shownErrors = []error{
	lineage.ErrNotFound, lineage.ErrInvalid, lineage.ErrExists, lineage.ErrConflict, lineage.ErrErased, lineage.ErrTooLarge, lineage.ErrReadOnly,
	lineage.ErrOtherUser, lineage.ErrProtected, refs.ErrAmbiguous, ErrNoProject, context.Canceled, context.DeadlineExceeded, errInside,
}

// failure returns an error in the form that a client gets.
func (s *Service) failure(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if !slices.ContainsFunc(shownErrors, func(known error) bool { return errors.Is(err, known) }) {
		s.o.Logger.Error("failed", "tool", what, "err", err)
		return errInside
	}
	text := plain.Line(err.Error())
	if hint := hintOf(err); hint != "" {
		text += "\nhint: " + plain.Line(hint)
	}
	return errors.New(text)
}

// hintOf returns what a client can do about an error with these tools, empty for nothing.
func hintOf(err error) string {
	var unknown *refs.UnknownError
	var ambiguous *refs.AmbiguousError
	var step *refs.StepError
	var kind *refs.KindError
	var name *refs.NameError
	switch {
	case errors.As(err, &unknown) && len(unknown.Near) > 0:
		return unknown.Hint()
	case errors.As(err, &unknown) && unknown.Kind == "thread":
		return "the tool threads lists the conversations"
	case errors.As(err, &unknown):
		return "the tool tree lists the branches, checkpoints and messages of a conversation"
	case errors.As(err, &ambiguous):
		return ambiguous.Hint()
	case errors.As(err, &name):
		return name.Hint()
	case errors.As(err, &step):
		return "the tool read shows the history with its positions"
	case errors.As(err, &kind):
		return "a fork of the position is a context"
	}
	return ""
}
