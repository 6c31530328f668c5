// Package sharing lets many processes use one store. The process that holds the lock of the
// directory is the owner: it has the store open and serves it on a socket there. All others are
// guests, who use it over a connection. When the owner goes away, a guest becomes the owner.
//
// [Open] returns an engine that does all of this. Which of the two it is can change at any time,
// and its caller need not know.
package sharing
