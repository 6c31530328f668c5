// Package pgtest gives tests a real PostgreSQL to talk to.
//
// The first test that asks starts a private cluster from the binaries that are
// installed: in a directory of its own, listening on nothing but a socket in it,
// without syncing to disk. It serves every test of the process and goes when the
// process does, however that ends. Each test gets a database of its own.
//
// Pooled gives databases behind PgBouncer, where that is installed.
//
// LINEAGE_TEST_POSTGRES names another server to use, as a URL or a connection
// string of a role that may create databases. Where there is neither, tests are
// skipped and say so; with CI=true they fail instead.
package pgtest
