package archives

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/rawjson"
)

// rowJSON returns a row as an object on one line: {"table": …, "key": …, "row": {…}}, with the columns in the order
// of the table. Numbers, texts and NULL are JSON values; a real number has a point or an exponent. A text that is an
// object or a list on one line is written unquoted, so that its texts are stored once with those of messages. Bytes
// are {"$blob": …} in base64, or {"$json": …} if they are such a text; a text that is not UTF-8 is {"$text": …} in
// base64; an infinite number is {"$real": …}. A text that begins like one of these is quoted. So no two values look
// the same.
func rowJSON(table, key string, columns []string, v row) []byte {
	b := append([]byte(`{"table":`), rawjson.Quote(table)...)
	b = append(append(b, `,"key":`...), rawjson.Quote(key)...)
	b = append(b, `,"row":{`...)
	for i, c := range columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, rawjson.Quote(c)...), ':')
		b = appendCell(b, v[c])
	}
	return append(b, '}', '}')
}

func appendCell(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		if math.IsInf(v, 0) {
			return append(strconv.AppendFloat(append(b, `{"$real":"`...), v, 'g', -1, 64), `"}`...)
		}
		from := len(b)
		if b = strconv.AppendFloat(b, v, 'g', -1, 64); !bytes.ContainsAny(b[from:], ".e") {
			b = append(b, ".0"...)
		}
		return b
	case string:
		switch {
		case isInline(v):
			return append(b, v...)
		case utf8.ValidString(v):
			return append(b, rawjson.Quote(v)...)
		}
		return appendBase64(b, "$text", []byte(v))
	case []byte:
		if isInline(string(v)) {
			return append(append(append(b, `{"$json":`...), v...), '}')
		}
		return appendBase64(b, "$blob", v)
	}
	return append(b, "null"...)
}

func appendBase64(b []byte, key string, value []byte) []byte {
	b = append(append(append(b, `{"`...), key...), `":"`...)
	b = base64.StdEncoding.AppendEncode(b, value)
	return append(b, `"}`...)
}

// isInline reports whether a text is an object or list that can be written into a line unchanged.
func isInline(text string) bool {
	last := len(text) - 1
	if last < 1 || !(text[0] == '{' && text[last] == '}' || text[0] == '[' && text[last] == ']') {
		return false
	}
	raw := []byte(text)
	return !bytes.HasPrefix(raw, []byte(`{"$`)) && !bytes.ContainsAny(raw, "\n\r") && utf8.Valid(raw) && rawjson.Valid(raw)
}
