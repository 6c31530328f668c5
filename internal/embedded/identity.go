package embedded

// StoreID implements backend.Identified.
func (e *Engine) StoreID() [16]byte { return e.journal.StoreID() }
