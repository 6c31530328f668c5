// Package archives reads archives that are SQLite files: the checkpoints that
// LangGraph keeps, and the log of the program llm. [Formats] returns them for
// [archive.Options], beside the formats that package archive has itself.
//
// The files are not trusted. They are opened for reading only; only ordinary
// tables are read, never a view or virtual table that bears a table's name;
// pickled values are refused, and what is packed in others is decoded within
// limits of depth and size.
package archives

import "github.com/lineage-store/lineage/lineage/archive"

// Formats lists the formats of this package.
func Formats() []archive.Format { return []archive.Format{langGraph(), llm()} }
