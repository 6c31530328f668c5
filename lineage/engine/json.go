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

// eachString calls yield with the text of every string in a value that is a value itself, not
// a name. It finds none in what is not JSON.
func eachString(raw []byte, yield func(string)) {
	if rawjson.Valid(raw) {
		walkStrings(raw[rawjson.SkipSpace(raw, 0):], yield)
	}
}

func walkStrings(raw []byte, yield func(string)) {
	if text, ok := rawjson.Text(raw[:rawjson.ValueEnd(raw, 0)]); ok {
		yield(text)
	}
	for m := range rawjson.Members(raw) {
		walkStrings(m.Value, yield)
	}
	for e := range rawjson.Elements(raw) {
		walkStrings(e, yield)
	}
}
