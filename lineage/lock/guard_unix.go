//go:build unix

package lock

// guardIsRemovable: an open file can be removed.
const guardIsRemovable = true

func isTransient(error) bool { return false }
