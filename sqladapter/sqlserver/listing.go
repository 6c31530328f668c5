package sqlserver

import "github.com/lineage-store/lineage/sqladapter"

// hasMetadata tests for the first key of a path and, if it is the only one, for the value there or
// in an array there.
func hasMetadata(parameter func() string) string {
	equals := func(alias string) string {
		return alias + `.[type] = ` + parameter() + ` AND (` + alias + `.[value] = ` + parameter() + ` OR ` + alias + `.[type] IN (2, 5))`
	}
	return `EXISTS (SELECT 1 FROM OPENJSON(CASE WHEN ISJSON([metadata]) = 1 THEN [metadata] ELSE N'{}' END) AS t WHERE t.[key] = ` + parameter() +
		` AND (` + equals("t") + ` OR EXISTS (SELECT 1 FROM OPENJSON(CASE WHEN t.[type] = 4 THEN t.[value] END) AS e WHERE ` + equals("e") + `)))`
}

// metadataArgs returns the key and, twice, the type as OPENJSON numbers it and the value. Numbers
// and objects are checked after reading.
func metadataArgs(v sqladapter.MetadataValue) []any {
	key := v.Path[0]
	if len(v.Path) > 1 {
		return []any{key, 5, "", 5, ""}
	}
	switch value := v.Value.(type) {
	case string:
		return []any{key, 1, value, 1, value}
	case bool:
		name := map[bool]string{true: "true", false: "false"}[value]
		return []any{key, 3, name, 3, name}
	}
	return []any{key, 2, "", 2, ""}
}
