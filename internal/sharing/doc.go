// Package sharing lets many processes use one store. The process that holds the lock of the directory is the owner:
// it has the store open and serves it on a socket in the directory. All other processes are guests, which use the
// store over a connection. When the owner exits, a guest becomes the owner.
//
// [Open] returns an engine that is an owner or a guest. It can change from one to the other at any time, unnoticed by
// its caller.
package sharing
