// Package content names, describes and cuts the immutable bytes that everything
// else in a store refers to.
//
// A block is known by its ID, the SHA-256 of exactly its body: type, origin and time are
// stored with it and never change the id. A body larger than InlineLimit is cut into chunks at
// places that depend only on its bytes, so that an edit leaves most chunks as they were, and
// the chunks hang from a Merkle tree whose nodes are stored like chunks. Chunks and nodes are
// known by their Key, the BLAKE3 of their bytes.
//
// The package stores nothing: the caller provides functions that store and fetch chunks. Bytes
// that are read back are checked against the requested key.
//
// Ids, keys, type codes, the places of cuts and the form of nodes are on disk and
// must not change.
package content
