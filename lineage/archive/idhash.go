package archive

import "crypto/sha256"

// IDHash stands for the id of a message where there are many: it takes less memory. Equal hashes are taken for equal ids.
type IDHash [16]byte

// HashID returns the hash of an id. That of no id is zero.
func HashID(id string) (h IDHash) {
	if id != "" {
		sum := sha256.Sum256([]byte(id))
		copy(h[:], sum[:])
	}
	return h
}
