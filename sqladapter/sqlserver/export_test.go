package sqlserver

// StatementsOfDialect are the statements that are written as they are.
func StatementsOfDialect() map[string]string {
	return map[string]string{"lockSchema": lockSchema, "columns": tableColumns, "kind": kindOf, "hasFullText": hasFullText}
}
