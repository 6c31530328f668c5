package embedded

// DropCaches forgets everything that was read and decoded, to measure cold reads. The index stays,
// and of each pack its table and its first chapter.
func (e *Engine) DropCaches() {
	e.journal.Cool()
	e.frames.Clear()
	e.packs.Load().places.Clear()
	e.write.Lock()
	defer e.write.Unlock()
	e.forgetRecent()
}
