// Package elsewhere tests SQL Server's dialect on SQLite: its tables, limits and
// searches, without its T-SQL. It has nothing but tests.
package elsewhere
