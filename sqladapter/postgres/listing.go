package postgres

import (
	"encoding/json"
	"slices"

	"github.com/lineage-store/lineage/sqladapter"
)

// metadataSyntax uses the documented index.
func metadataSyntax() sqladapter.MetadataSyntax {
	return sqladapter.MetadataSyntax{
		Condition: func(parameter func() string) string {
			return `("metadata" @> CAST(` + parameter() + ` AS JSONB) OR "metadata" @> CAST(` + parameter() + ` AS JSONB))`
		},
		Args: metadataArgs,
		Few:  10_000,
		// MATERIALIZED and + 0 prevent the planner from using an index for the order or the times
		// instead.
		Keys: `WITH "few" AS MATERIALIZED (SELECT "id", "updatedAt" FROM "chats" ` +
			`WHERE "updatedAt" + 0 >= ? AND "updatedAt" + 0 <= ? {metadata} LIMIT 10001) ` +
			`SELECT "id", "updatedAt", "id" < ? AS "less" FROM "few" ORDER BY "updatedAt" DESC, "id" DESC`,
		KeysOfUser: `WITH "few" AS MATERIALIZED (SELECT "id", "updatedAt" FROM "chats" ` +
			`WHERE "userId" = ? AND "updatedAt" + 0 >= ? AND "updatedAt" + 0 <= ? {metadata} LIMIT 10001) ` +
			`SELECT "id", "updatedAt", "id" < ? AS "less" FROM "few" ORDER BY "updatedAt" DESC, "id" DESC`,
	}
}

// metadataArgs returns two objects: one with the value, and one with an array of it. The metadata must contain one of them.
func metadataArgs(v sqladapter.MetadataValue) []any {
	var args []any
	for _, object := range []json.RawMessage{v.JSON, json.RawMessage("[" + string(v.JSON) + "]")} {
		for _, key := range slices.Backward(v.Path) {
			object, _ = json.Marshal(map[string]json.RawMessage{key: object}) // of JSON
		}
		args = append(args, object)
	}
	return args
}
