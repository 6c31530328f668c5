//go:build !linux

package remote

import "time"

// sinceBoot is the time of day where there is no clock that all processes share otherwise.
func sinceBoot() time.Duration { return time.Duration(time.Now().UnixNano()) }
