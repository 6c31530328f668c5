package lock

import (
	"errors"

	"golang.org/x/sys/windows"
)

// guardIsRemovable: a removed file keeps its name until all have closed it, so the empty guard file stays.
const guardIsRemovable = false

// isTransient reports whether err says that a file is open in another process or is being deleted.
func isTransient(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) ||
		errors.Is(err, windows.ERROR_ACCESS_DENIED) ||
		errors.Is(err, windows.ERROR_DELETE_PENDING)
}
