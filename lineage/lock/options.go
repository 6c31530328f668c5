package lock

import (
	"fmt"
	"time"
)

const (
	defaultStale = time.Minute
	minimumStale = 10 * time.Millisecond
)

// Options configure a lock. The zero value of each field is its default.
type Options struct {
	// Stale is the time without a refresh after which a lock is stale. It should be the same for
	// all programs that lock a file; if they differ, the longer one applies. Default one minute,
	// minimum 10 ms.
	Stale time.Duration
	// Refresh is the interval of refreshes. It must be less than Stale; default a quarter of it.
	Refresh time.Duration
	// Wait is how long With waits for a held lock. Default: not at all. Negative: until the context
	// ends.
	Wait time.Duration
}

// withDefaults returns o with defaults for zero fields.
func (o Options) withDefaults() Options {
	if o.Stale == 0 {
		o.Stale = defaultStale
	}
	if o.Refresh == 0 {
		o.Refresh = o.Stale / 4
	}
	return o
}

func (o Options) validate() error {
	if o.Stale < minimumStale {
		return fmt.Errorf("lock options: stale after %v: the minimum is %v", o.Stale, minimumStale)
	}
	if o.Refresh <= 0 || o.Refresh >= o.Stale {
		return fmt.Errorf("lock options: refresh interval %v is not less than stale time %v", o.Refresh, o.Stale)
	}
	return nil
}
