// Package remote carries the port of package backend over a connection: a [Server] answers for
// any engine, and a [Client] is an engine. It opens no files and repeats nothing. A request whose
// answer is lost is an error that says so.
package remote
