// Package sdktest reads what package message writes with the types of the providers' own
// libraries: each message must fit a type of theirs, and come back from it with nothing lost.
package sdktest
