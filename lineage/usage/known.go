package usage

import "encoding/binary"

// knownKeys are the keys of answers in the windows of an update that began with empty data. A key that is not among them is in no
// earlier window, which needs no query. There may be others.
type knownKeys struct {
	complete bool
	keys     map[uint64]struct{} // the start of each, which is of a hash
}

// mostKnown limits the keys that are remembered.
var mostKnown = 1 << 19

// begin begins a window. fresh is set if the data was empty when the update began, first if it is empty now.
func (k *knownKeys) begin(fresh, first bool) {
	if fresh && first {
		*k = knownKeys{complete: true, keys: make(map[uint64]struct{})}
	}
	k.complete = k.complete && fresh // another process may have written otherwise
}

func (k *knownKeys) lacks(key *answerKey) bool {
	_, has := k.keys[binary.BigEndian.Uint64(key[:])]
	return k.complete && !has
}

// add adds a key that is being stored, maybe for nothing.
func (k *knownKeys) add(key *answerKey) {
	if !k.complete {
		return
	}
	if k.keys[binary.BigEndian.Uint64(key[:])] = struct{}{}; len(k.keys) > mostKnown {
		*k = knownKeys{}
	}
}
