// Package sqladapter keeps chats in a SQL database, in the documented tables, and
// brings a store's history into such a database and back. It links no driver: the
// packages below it each open one kind of database.
//
// [DB] is an open database. [DB.Chats] are the documented chat operations on it.
//
// # Dialects
//
// What a database does its own way is its [Dialect]; everything else is written once,
// as a [Statement] that each dialect renders. Statements are constants: the fields of
// variables whose names end with SQL, where tests find every one of them.
//
// # Other programs
//
// The documented tables may be written by others at the same time. What is known of a
// message beyond its row is in tables of our own, and is made from the row when it
// is missing. Nothing that is answered relies on others to keep it.
//
// # Search
//
// The words of a text are found here, not by the databases, so that all of them
// find the same. Their indexes say which messages may match; the query is decided on
// the message itself.
package sqladapter
