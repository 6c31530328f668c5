package sqlserver

import "github.com/lineage-store/lineage/sqladapter"

// hasMetadata looks for the first key of a path and, where it is the only one, for the value.
func hasMetadata(parameter func() string) string {
	return `EXISTS (SELECT 1 FROM OPENJSON(CASE WHEN ISJSON([metadata]) = 1 THEN [metadata] ELSE N'{}' END) AS t WHERE t.[key] = ` + parameter() +
		` AND (t.[type] = 4 OR t.[type] = ` + parameter() + ` AND (t.[value] = ` + parameter() + ` OR t.[type] IN (2, 5))))`
}

// metadataArgs returns the key, the type as OPENJSON numbers it, and the value. Numbers, objects and lists
// are looked at elsewhere.
func metadataArgs(v sqladapter.MetadataValue) []any {
	key := v.Path[0]
	if len(v.Path) > 1 {
		return []any{key, 5, ""}
	}
	switch is := v.Value.(type) {
	case string:
		return []any{key, 1, is}
	case bool:
		return []any{key, 3, map[bool]string{true: "true", false: "false"}[is]}
	}
	return []any{key, 2, ""}
}
