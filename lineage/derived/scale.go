package derived

import "errors"

// ErrSlow is returned by Target.Write when a transaction takes longer than it may, and by Follower.Run when the smallest
// transaction does.
var ErrSlow = errors.New("writing derived data takes too long")

// scale is the share of the usual size that windows and their transactions have. It is halved when a transaction is too
// slow, and doubled after some windows.
type scale struct {
	halved int // how often
	since  int // windows that were applied since the last change
}

const (
	// mostHalved leaves few enough changes for a transaction of a single text, and windows of a single commit.
	mostHalved = 13
	// growAfter is the number of windows after which larger ones are tried.
	growAfter = 16
)

// errShrunk ends a pass after a transaction that was too slow. The windows of the next pass are smaller.
var errShrunk = errors.New("derived data is written in smaller parts")

// of returns the share of a size, at least 1.
func (s *scale) of(n int) int { return max(n>>s.halved, 1) }

// failed returns the error of a window with a size. It is errShrunk if the window was too slow and can be smaller. limit is
// the usual size.
func (s *scale) failed(err error, size, limit int) error {
	if !errors.Is(err, ErrSlow) || s.halved == mostHalved {
		return err
	}
	s.halved, s.since = s.halved+1, 0
	for s.halved < mostHalved && s.of(limit) > max(size/2, 1) { // it was the last window, or a small update
		s.halved++
	}
	return errShrunk
}

// applied counts a window.
func (s *scale) applied() {
	if s.since++; s.since >= growAfter && s.halved > 0 {
		s.halved, s.since = s.halved-1, 0
	}
}
