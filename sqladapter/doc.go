// Package sqladapter opens SQL databases with chats. It links no driver: the packages sqlite, postgres and
// sqlserver each open one kind of database.
//
// [DB] is a database, and [Conn] runs statements on it. Other packages do the work: sqlchat is the chat
// store on a database, project copies a store's history to one, and importing copies chats from one to
// a store.
//
// # Dialects
//
// The specifics of a database are in its [Dialect]; everything else is written once, as a
// [Statement] that each dialect renders. Statements are constants: fields of variables whose names
// end with SQL, so that tests find all of them.
package sqladapter
