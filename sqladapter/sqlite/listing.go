package sqlite

import (
	"encoding/json"

	"github.com/lineage-store/lineage/sqladapter"
)

// hasMetadata tests for a value at the last key of a path, or in an array, anywhere in the
// metadata.
func hasMetadata(parameter func() string) string {
	return `EXISTS (SELECT 1 FROM json_tree(CASE WHEN json_valid("metadata") THEN "metadata" ELSE 'null' END) AS t WHERE (t."key" = ` + parameter() + ` OR TYPEOF(t."key") = 'integer')` +
		` AND t."type" IN (` + parameter() + `, ` + parameter() + `) AND (t."atom" = ` + parameter() +
		` OR t."atom" BETWEEN ` + parameter() + ` AND ` + parameter() + `))`
}

func metadataArgs(v sqladapter.MetadataValue) []any {
	key := v.Path[len(v.Path)-1]
	switch value := v.Value.(type) {
	case bool:
		name := map[bool]string{true: "true", false: "false"}[value]
		return []any{key, name, name, value, nil, nil}
	case json.Number:
		return []any{key, "integer", "real", nil, v.Least, v.Greatest}
	}
	return []any{key, "text", "text", v.Value, nil, nil}
}
