package backend

import (
	"context"
	"errors"
)

// maxStates limits the states that are read before the error of an expired one is returned.
const maxStates = 10

// Repeat calls read, which reads one state. If that state expires in the meantime, for example because the process
// that has the store open closes it, Repeat calls read again.
func Repeat(read func() error) error {
	for try := 1; ; try++ {
		if err := read(); try == maxStates || !errors.Is(err, ErrExpired) {
			return err
		}
	}
}

// AtOnce reads one state with several calls: see Repeat.
func AtOnce[T any](ctx context.Context, v View, read func(Snapshot) (T, error)) (result T, err error) {
	err = Repeat(func() error {
		s, err := v.Snapshot(ctx)
		if err != nil {
			return err
		}
		result, err = read(s)
		if closed := s.Close(); err == nil {
			err = closed
		}
		return err
	})
	return result, err
}
