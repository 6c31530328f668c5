// Package content names, describes and cuts the immutable bytes that everything
// else in a store refers to.
//
// A block is known by its ID, the SHA-256 of exactly its body: type, origin and
// time stand beside the body and never change the id. A body larger than
// InlineLimit is cut into chunks at places that its bytes decide, so that an edit
// leaves most chunks as they were, and the chunks hang from a Merkle tree whose
// nodes are stored like chunks. Chunks and nodes are known by their Key, the
// BLAKE3 of their bytes.
//
// The package keeps nothing: whoever calls it says where chunks go and where they
// come from. Whatever it reads back it checks against the key it was asked by.
//
// Ids, keys, type codes, the places of cuts and the form of nodes are on disk and
// must not change.
package content
