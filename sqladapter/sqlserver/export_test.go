package sqlserver

// StatementsOfDialect are the statements without marks.
func StatementsOfDialect() map[string]string {
	return map[string]string{"lockSchema": lockSchema, "columns": tableColumns, "kind": kindOf, "hasFullText": hasFullText}
}
