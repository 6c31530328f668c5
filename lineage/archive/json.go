package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/rawjson"
)

const (
	typeText = content.TypeText
	typeJSON = content.TypeJSON
)

// maxDepth is the maximum nesting depth of values.
const maxDepth = rawjson.MaxDepth

// checkJSON refuses invalid JSON and values nested too deeply.
func checkJSON(raw []byte) error {
	err := rawjson.Check(raw)
	var syntax *rawjson.SyntaxError
	if errors.As(err, &syntax) {
		return malformed("%v", syntax)
	}
	return err
}

// textBody returns a string as a text body, and other values, including strings with invalid
// Unicode, as JSON.
func textBody(raw []byte) (body []byte, mediaType string) {
	if rawjson.IsString(raw) {
		if b, exact := rawjson.Unquote(raw); exact {
			return b, typeText
		}
	}
	return raw, typeJSON
}

// jsonObject builds an object from members.
type jsonObject struct{ buf []byte }

// add adds a member of another object.
func (o *jsonObject) add(m rawjson.Member) { o.addRaw(m.Quoted, m.Value) }

// set adds a member with a JSON value.
func (o *jsonObject) set(key string, value []byte) {
	quoted, _ := json.Marshal(key)
	o.addRaw(quoted, value)
}

// setText adds a member with a text, unless it is empty.
func (o *jsonObject) setText(key, value string) {
	if value != "" {
		quoted, _ := json.Marshal(value)
		o.set(key, quoted)
	}
}

func (o *jsonObject) addRaw(quoted, value []byte) {
	if o.buf == nil {
		o.buf = make([]byte, 0, len(quoted)+len(value)+64)
	}
	lead := byte(',')
	if len(o.buf) == 0 {
		lead = '{'
	}
	o.buf = append(append(append(append(o.buf, lead), quoted...), ':'), value...)
}

// bytes returns the object, nil if it has no members.
func (o *jsonObject) bytes() []byte {
	if len(o.buf) == 0 {
		return nil
	}
	b := append(o.buf, '}')
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return b
}

var earliest, latest = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)

// parseTime returns the time in a value: a text, or a number of seconds, milliseconds, microseconds
// or nanoseconds since 1970, distinguished by magnitude. It returns the zero time for anything
// else.
func parseTime(raw []byte) time.Time {
	if rawjson.IsString(raw) {
		s := rawjson.Str(raw)
		for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02"} {
			if t, err := time.Parse(layout, s); err == nil {
				return inRange(t)
			}
		}
		raw = []byte(s)
	}
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return time.Time{}
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || n == 0 || math.Abs(n) > 1e19 {
		return time.Time{}
	}
	for size := math.Abs(n); size > 1e11; size /= 1000 {
		n /= 1000
	}
	return inRange(time.UnixMilli(int64(math.Round(n * 1000))))
}

// inRange returns the time with the stored precision, or the zero time if it is outside the
// calendar.
func inRange(t time.Time) time.Time {
	if t.Before(earliest) || t.After(latest) {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
