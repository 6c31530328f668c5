// Package server serves an open store over HTTP to people and programs on this machine: the routes of a page, events,
// content, and what operating it needs. Routes are in one table, which states who may call each: see routes.
//
//	request ─▶ headers ─▶ log, limits ─▶ host, origin ─▶ route ─▶ credentials ─▶ handler
//
// It uses the public operations of a store and depends on no engine. Package access keeps tokens, and package attachment
// sends bytes that may be hostile. docs/server.md lists the security rules, each with its test.
package server
