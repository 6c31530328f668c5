// Package filters reads the filters in what people search for, such as agent:codex or after:2026-10.
package filters

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// metadata are the filters on metadata of conversations.
var metadata = map[string]string{"agent": archive.KeyAgent, "project": archive.KeyProject, "branch": archive.KeyGitBranch}

// NotDateError is returned for a filter by time that is no day, month or year.
type NotDateError struct{ Text string }

func (e *NotDateError) Error() string {
	return fmt.Sprintf("%.40q is no date: 2026-01-31 is one", e.Text)
}

// Read splits a query into filters and the rest: agent, project and branch (of git), user, after and before, with a value in
// quotes if it has spaces. A word in quotes as a whole is no filter. among is nil if there are no filters.
func Read(query string) (among *lineage.ThreadQuery, text string, err error) {
	var words []string
	q := &lineage.ThreadQuery{}
	for _, word := range split(query) {
		key, value, isFilter := strings.Cut(word, ":")
		if value = strings.Trim(value, `"`); value == "" {
			isFilter = false
		}
		switch {
		case isFilter && metadata[key] != "":
			is, err := json.Marshal(value)
			if err != nil {
				return nil, "", err
			}
			q.Metadata = append(q.Metadata, lineage.MetadataIs{Key: metadata[key], Value: is})
		case isFilter && key == "user":
			q.User = &value
		case isFilter && (key == "after" || key == "before"):
			at, err := day(value)
			if err != nil {
				return nil, "", err
			}
			if key == "after" {
				q.From = at
			} else {
				q.To = at
			}
		default:
			words = append(words, word)
			continue
		}
		among = q
	}
	return among, strings.Join(words, " "), nil
}

// split splits a query at spaces outside of quotes.
func split(query string) []string {
	quoted := false
	return strings.FieldsFunc(query, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return unicode.IsSpace(r) && !quoted
	})
}

// day parses a day, a month or a year.
func day(text string) (time.Time, error) {
	for _, form := range []string{time.DateOnly, "2006-01", "2006"} {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, &NotDateError{text}
}
