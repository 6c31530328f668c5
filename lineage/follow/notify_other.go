//go:build !linux && !windows

package follow

import "errors"

// newNotifier returns an error: on other systems, watching takes a file descriptor for each file.
func newNotifier() (notifier, error) {
	return nil, errors.New("this system reports changes only for files that are held open")
}
