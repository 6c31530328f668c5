package lock

import (
	"fmt"
	"time"
)

const (
	defaultStale = time.Minute
	minimumStale = 10 * time.Millisecond
)

// Options configure a lock. The zero value of each field is a default.
type Options struct {
	// Stale is how long a lock counts without being refreshed. It should be the
	// same for all that lock one file; where a holder's differs, the longer one
	// counts. The default is a minute, the least 10 ms.
	Stale time.Duration
	// Refresh is how often a holder renews its stamp. It must be less than
	// Stale; the default is a quarter of it.
	Refresh time.Duration
	// Wait is how long With waits for a lock that is held: not at all by
	// default, as long as its context allows when negative.
	Wait time.Duration
}

// withDefaults returns o with its zero values filled in.
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
		return fmt.Errorf("lock options: stale after %v, the least is %v", o.Stale, minimumStale)
	}
	if o.Refresh <= 0 || o.Refresh >= o.Stale {
		return fmt.Errorf("lock options: refresh every %v does not keep a lock that is stale after %v", o.Refresh, o.Stale)
	}
	return nil
}
