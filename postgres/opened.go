package postgres

// databaseFacts is what a process has to know of a database to open a store.
type databaseFacts struct {
	version     int    // of the tables, 0 when there are none
	missing     int    // tables without their keys
	identity    []byte // of the store; nil if it does not exist
	fsync       string
	distributes bool // an extension that distributes tables is installed
}
