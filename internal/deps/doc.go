// Package deps holds the tests that keep the repository in order: imports point one way, each package links
// only the libraries it is for, and no file mentions the machine it was written on. It has no code of its own.
package deps
