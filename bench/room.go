package bench

import (
	"errors"
	"fmt"
)

// ErrNoRoom is returned if the disk has not enough space for a run.
var ErrNoRoom = errors.New("not enough room on the disk")

// checkRoom returns an error if the disk of Dir has less space than the large store needs.
func (c *Config) checkRoom() error {
	if !c.wants("store") {
		return nil
	}
	free, err := freeBytes(c.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Dir, err)
	}
	if need := c.roomNeeded(); free < need {
		return fmt.Errorf("%w: a store of %s messages of %s needs %s, and %s has %s", ErrNoRoom,
			count(c.StoreMessages), figure(float64(c.MessageBytes), unitBytes), figure(float64(need), unitBytes), c.Dir, figure(float64(free), unitBytes))
	}
	return nil
}

// roomNeeded is the maximum size of the large store, the content and the overhead of its messages,
// and a reserve, so that the disk does not become full.
func (c *Config) roomNeeded() uint64 {
	const beside, reserve = 160, 1 << 30
	return uint64(c.StoreMessages)*(uint64(c.MessageBytes)+beside) + reserve
}
