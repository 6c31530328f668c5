package postgres

import (
	"encoding/json"
	"slices"

	"github.com/lineage-store/lineage/sqladapter"
)

// hasMetadata uses the documented index.
func hasMetadata(parameter func() string) string {
	return `("metadata" @> CAST(` + parameter() + ` AS JSONB) OR "metadata" @> CAST(` + parameter() + ` AS JSONB))`
}

// metadataArgs returns the objects one of which the metadata must contain: with the value, and with a list that has it.
func metadataArgs(v sqladapter.MetadataValue) (args []any) {
	list, _ := json.Marshal([]json.RawMessage{v.JSON}) // of JSON
	for _, object := range []json.RawMessage{v.JSON, list} {
		for _, key := range slices.Backward(v.Path) {
			object, _ = json.Marshal(map[string]json.RawMessage{key: object})
		}
		args = append(args, string(object))
	}
	return args
}
