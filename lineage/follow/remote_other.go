//go:build !linux

package follow

// isRemote reports whether changes in a folder may go unnoticed. On other systems the notifier itself reports that.
func isRemote(string) bool { return false }
