// Package elsewhere tests the SQL Server dialect on SQLite: its tables, limits and searches, but
// not its T-SQL. It contains only tests.
package elsewhere
