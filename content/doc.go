// Package content identifies, describes and cuts the immutable bytes that everything else in a
// store refers to.
//
// A block is identified by its ID, the SHA-256 of its body: type, origin and time are stored
// with it and do not change the id. A body larger than InlineLimit is cut into chunks at
// places that depend only on its bytes, so that an edit changes few chunks. A Merkle tree,
// whose nodes are stored like chunks, connects them. Chunks and nodes are identified by their
// Key, the BLAKE3 of their bytes.
//
// The package stores nothing: the caller provides functions that store and fetch chunks.
// Fetched bytes are checked against the requested key.
//
// Ids, keys, type codes, the places of cuts and the encoding of nodes are on disk and must not
// change.
package content
