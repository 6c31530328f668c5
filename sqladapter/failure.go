package sqladapter

// Failure classifies a driver's error.
type Failure int

// The kinds of failure.
const (
	// OtherFailure is any other error, or none.
	OtherFailure Failure = iota
	// Busy means that another transaction was in the way, or that the database is overloaded. The
	// transaction is rolled back; a retry may succeed.
	Busy
	// Lost means that the connection was lost or could not be made. The transaction is rolled back, unless it was
	// being committed. Then the outcome is unknown.
	Lost
	// Denied means that the user lacks a right.
	Denied
	// Duplicate means that a key is taken.
	Duplicate
	// Dangling means that a referenced row does not exist, or that a deleted row is still
	// referenced.
	Dangling
	// Unstorable means that the database cannot store a value.
	Unstorable
	// Pooled means that a connection pooler gave the connection with a prepared statement to another client.
	Pooled
	// NoSchema means that the schema for the tables does not exist.
	NoSchema
)
