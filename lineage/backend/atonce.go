package backend

import (
	"context"
	"errors"
)

// mostStates is how many states are read at most before one expires no more.
const mostStates = 10

// AtOnce reads one state with several calls. Where it expires meanwhile, as it does when the
// process that has the store open closes it, another one is read.
func AtOnce[T any](ctx context.Context, v View, read func(Snapshot) (T, error)) (result T, err error) {
	for range mostStates {
		s, failed := v.Snapshot(ctx)
		if failed != nil {
			if err == nil || ctx.Err() != nil {
				err = failed
			}
			return result, err
		}
		result, err = read(s)
		if closed := s.Close(); err == nil {
			err = closed
		}
		if !errors.Is(err, ErrExpired) {
			return result, err
		}
	}
	return result, err
}
