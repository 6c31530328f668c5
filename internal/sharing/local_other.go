//go:build !linux && !darwin

package sharing

// isLocal reports whether a directory is on a file system that only this machine uses.
func isLocal(string) bool { return false }
