// Package sqladapter stores chats in a SQL database, in the documented tables, and copies a store's
// history to such a database and back. It links no driver: its subpackages each open one kind of
// database.
//
// [DB] is an open database. [DB.Chats] implements the documented chat operations.
//
// # Dialects
//
// The specifics of a database are in its [Dialect]; everything else is written once, as a
// [Statement] that each dialect renders. Statements are constants: fields of variables whose names
// end with SQL, so that tests find all of them.
//
// # Other programs
//
// Other programs may write to the documented tables at the same time. Further data about a message
// is in separate tables and is derived from the row when it is missing. No result depends on other
// programs to maintain it.
//
// # Search
//
// Texts are split into words by this package, not by the databases, so that all of them find the
// same. Their indexes return candidates; the query is then evaluated on the message itself.
package sqladapter
