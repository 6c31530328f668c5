// Package server offers an open store to people and programs of this machine over HTTP: the routes of a page, events,
// content, and what operating it needs. Routes are in one table, with who may call each: see routes.
//
//	request ─▶ headers ─▶ log, limits ─▶ host, origin ─▶ route ─▶ credentials ─▶ handler
//
// It uses the public operations of a store, and knows no engine. Package access keeps tokens, and package attachment sends
// bytes that may be hostile. docs/server.md lists the rules of security, each with its test.
package server
