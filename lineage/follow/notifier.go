package follow

// notifier reports changes in folders.
type notifier interface {
	// add starts to report changes of a folder, and of the names and files in it.
	add(dir string) error
	// remove stops that.
	remove(dir string)
	// ready receives when take has something to return.
	ready() <-chan struct{}
	// take returns the paths that have changed since the last call. lost is set if some changes are missing.
	take() (paths []string, lost bool)
	close()
}
