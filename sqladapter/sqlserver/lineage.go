package sqlserver

import _ "embed"

//go:embed schema_projection.sql
var schemaProjection string

//go:embed schema_lineage.sql
var schemaLineage string

// ProjectionSchema implements sqladapter.Projectable.
func (Dialect) ProjectionSchema() string { return schemaProjection }

// LineageSchema implements sqladapter.Projectable.
func (Dialect) LineageSchema() string { return schemaLineage }
