//go:build !linux && !darwin

package sharing

// isLocal reports whether a directory is on a file system of this machine alone.
func isLocal(string) bool { return false }
