// Package sharing lets many processes use one store. The process that holds the lock of the
// directory is the owner: it has the store open and serves it on a socket there. All others are
// guests, which use the store over a connection. When the owner exits, a guest becomes the owner.
//
// [Open] returns an engine of either kind. It can change from one to the other at any time, and its
// caller need not know.
package sharing
