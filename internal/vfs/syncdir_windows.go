package vfs

// syncDir does nothing: Windows has no way to flush a directory, and NTFS keeps
// the order of name changes in its own journal.
func syncDir(string) error { return nil }
