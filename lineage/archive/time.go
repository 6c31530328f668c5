package archive

import (
	"math"
	"strconv"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
)

var earliest, latest = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC)

// ParseTime returns the time in a JSON value: a text, or a number of seconds, milliseconds, microseconds or
// nanoseconds since 1970. The magnitude of a number decides its unit. ParseTime returns the zero time for anything
// else.
func ParseTime(raw []byte) time.Time {
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

// inRange returns the time in the precision of the store, or the zero time if the year is out of range.
func inRange(t time.Time) time.Time {
	if t.Before(earliest) || t.After(latest) {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}
