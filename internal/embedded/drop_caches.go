package embedded

// DropCaches empties all caches of read and decoded data, to measure cold reads. It keeps the index, and the table
// and first chapter of each pack.
func (e *Engine) DropCaches() {
	e.journal.DropCache()
	e.frames.Clear()
	e.packs.Load().places.Clear()
	e.write.Lock()
	defer e.write.Unlock()
	e.forgetRecent()
}
