package importer

// KeepAll returns outlines that keep those of small threads, too.
func KeepAll() *Outlines {
	o := NewOutlines()
	o.least = 0
	return o
}

// SetSavedBytes sets the size of states that a transaction has, and returns the one before.
func SetSavedBytes(n int) (was int) {
	was, savedBytes = savedBytes, n
	return was
}
