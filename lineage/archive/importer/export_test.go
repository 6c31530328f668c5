package importer

// KeepAll returns outlines that keep those of small threads, too.
func KeepAll() *Outlines {
	o := NewOutlines()
	o.least = 0
	return o
}
