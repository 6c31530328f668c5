package embedded

// Cool lets go of what was read and decoded lately, so that a measurement can tell
// what a message costs that nothing is known of. What is ready for every message
// stays: the index, and of each pack its table and its base.
func (e *Engine) Cool() {
	e.journal.Cool()
	e.frames.Clear()
	e.below.Load().places.Clear()
	e.write.Lock()
	defer e.write.Unlock()
	e.forgetRecent()
}
