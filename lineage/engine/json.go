package engine

import (
	"github.com/lineage-store/lineage/internal/rawjson"
)

// setMember returns an object with one member set; other bytes are unchanged.
func setMember(raw []byte, name string, value []byte) []byte {
	return rawjson.Set(raw, rawjson.Quote(name), value)
}

// isObject reports whether data is a JSON object. It may be invalid JSON.
func isObject(data []byte) bool {
	return rawjson.Valid(data) && rawjson.IsObject(data[rawjson.SkipSpace(data, 0):])
}
