package postgres

// databaseFacts is what a process has to know of a database to open a store.
type databaseFacts struct {
	version     int    // of the tables, 0 when there are none
	missing     int    // tables without their keys
	identity    []byte // of the store; nil if it does not exist
	fsync       string
	distributes bool         // an extension that distributes tables is installed
	server      serverOfRows // zero if the store does not exist
}

// serverOfRows is the server that commits the rows of a store. Where tables are distributed, it may be another one than that of
// the connection.
type serverOfRows struct {
	address, fsync, synchronous string
}
