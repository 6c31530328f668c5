package backend

// Identified is an Engine whose store has an identity: a random id that it was
// given when it was made. Copies of a store have the same.
type Identified interface {
	StoreID() [16]byte
}
