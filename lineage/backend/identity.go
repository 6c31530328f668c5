package backend

// Identified is an Engine whose store has a random id, assigned when it was
// created. Copies of a store have the same id.
type Identified interface {
	StoreID() [16]byte
}
