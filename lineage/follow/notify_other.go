//go:build !linux && !windows

package follow

import "errors"

// newNotifier refuses: on other systems, watching takes a descriptor for each file.
func newNotifier() (notifier, error) {
	return nil, errors.New("this system reports changes only for files that are held open")
}
