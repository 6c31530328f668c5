package postgres

import (
	"encoding/json"
	"slices"

	"github.com/lineage-store/lineage/sqladapter"
)

// hasMetadata uses the documented index.
func hasMetadata(parameter func() string) string {
	return `"metadata" @> CAST(` + parameter() + ` AS JSONB)`
}

// metadataArgs returns the object that the metadata must contain.
func metadataArgs(v sqladapter.MetadataValue) []any {
	object := v.JSON
	for _, key := range slices.Backward(v.Path) {
		object, _ = json.Marshal(map[string]json.RawMessage{key: object}) // of JSON
	}
	return []any{string(object)}
}
