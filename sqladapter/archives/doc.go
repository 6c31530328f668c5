// Package archives reads archives that are SQLite files: LangGraph checkpoints, logs of the llm
// tool, and the sessions of OpenCode, Goose, Crush, Cursor and OpenClaw. Pass [Formats] to [importer.Options] in addition to the formats of package archive.
//
// The files are not trusted. They are opened read-only; only ordinary tables are read, never views
// or virtual tables with the same name; pickled values are refused, and other packed values are
// decoded with limits on depth and size.
package archives

import "github.com/lineage-store/lineage/lineage/archive"

// Formats lists the formats of this package.
func Formats() []archive.Format {
	return []archive.Format{langGraph(), llm(), openCode(), goose(), crush(), cursor(), openClaw()}
}
