// Package remote carries the port of package backend over a connection: a [Server] answers for
// any engine, and a [Client] is an engine. It opens no files. A request whose answer is lost is not
// repeated: it fails with an error that says so.
package remote
