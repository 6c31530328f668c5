package screen

import "time"

// Time writes a time in the local zone, to the minute.
func Time(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04")
}
