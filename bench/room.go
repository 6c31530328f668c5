package bench

import (
	"errors"
	"fmt"
)

// ErrNoRoom is returned where the disk has not enough room for a run.
var ErrNoRoom = errors.New("not enough room on the disk")

// checkRoom fails where the disk that stores are made on has less room than the
// large store will take.
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

// roomNeeded is what the large store takes at most: its content and what is beside
// it; what is measured to a certain size only and takes more; and a reserve, so that
// nobody else's disk is full.
func (c *Config) roomNeeded() uint64 {
	const beside, several, reserve = 160, 3, 1 << 30
	all, most := uint64(c.StoreMessages), uint64(min(c.StoreMessages, mostOfBolt))
	each := uint64(c.MessageBytes) + beside
	return max(all*each, most*each*several) + reserve
}
