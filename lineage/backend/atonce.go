package backend

import (
	"context"
	"errors"
)

// maxStates limits the states that are read before an expiry is returned.
const maxStates = 10

// AtOnce reads one state with several calls. If the state expires meanwhile, for example
// because the process with the store closes it, it reads another one.
func AtOnce[T any](ctx context.Context, v View, read func(Snapshot) (T, error)) (result T, err error) {
	for range maxStates {
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
