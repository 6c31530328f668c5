package engine

import (
	"github.com/lineage-store/lineage/internal/rawjson"
)

// setMember returns an object with a value under a name, everything else as it was.
func setMember(raw []byte, name string, value []byte) []byte {
	return rawjson.Set(raw, rawjson.Quote(name), value)
}

// isObject reports whether bytes, which may not be JSON, are an object.
func isObject(data []byte) bool {
	return rawjson.Valid(data) && rawjson.IsObject(data[rawjson.SkipSpace(data, 0):])
}
