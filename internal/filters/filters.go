// Package filters reads the filters in what people search for, such as agent:codex or after:2026-10.
package filters

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// metadata are the filters on metadata of conversations.
var metadata = map[string]string{"agent": archive.KeyAgent, "project": archive.KeyProject, "branch": archive.KeyGitBranch}

// NotDateError is returned for a filter by time that is no day, month or year, nor "today" or "yesterday". Like the other errors of this package it matches
// lineage.ErrInvalid.
type NotDateError struct{ Text string }

func (e *NotDateError) Error() string {
	return fmt.Sprintf("%.40q is no date: 2026-01-31 is one", e.Text)
}

// Is implements errors.Is.
func (*NotDateError) Is(target error) bool { return target == lineage.ErrInvalid }

// RepeatedError is returned for a query with two filters of a kind.
type RepeatedError struct{ Key string }

func (e *RepeatedError) Error() string {
	return fmt.Sprintf("%s: is there twice, and a search has one filter of a kind", e.Key)
}

// Is implements errors.Is.
func (*RepeatedError) Is(target error) bool { return target == lineage.ErrInvalid }

// PlaceError is returned for a filter that would limit only a part of the query, or exclude something.
type PlaceError struct{ Filter, Place string }

func (e *PlaceError) Error() string {
	return fmt.Sprintf("%.60q %s: a filter limits all of the search, and stands beside the words, as in (one OR two) agent:codex; in quotes it is text", e.Filter, e.Place)
}

// Is implements errors.Is.
func (*PlaceError) Is(target error) bool { return target == lineage.ErrInvalid }

// Read splits a query into filters and the rest: agent, project and branch (of git), user, after and before, with a value in
// quotes if it has spaces. A word in quotes as a whole is no filter. Filters are joined to the rest and to each other by AND, or by nothing.
// Days are those of a time zone. among is nil if there are no filters.
func Read(query string, zone *time.Location) (among *lineage.ThreadQuery, text string, err error) {
	all, err := clauses(query)
	if err != nil {
		return nil, "", err
	}
	var given []string
	if given, text, err = joined(all); err != nil || len(given) == 0 {
		return nil, text, err
	}
	among = &lineage.ThreadQuery{}
	seen := make(map[string]bool)
	for _, filter := range given {
		key, value, _ := cut(filter)
		if seen[key] {
			return nil, "", &RepeatedError{key}
		}
		seen[key] = true
		switch key {
		case "user":
			among.User = &value
		case "after":
			among.From, err = day(value, zone)
		case "before":
			among.To, err = day(value, zone)
		default:
			var encoded []byte
			encoded, err = json.Marshal(value)
			among.Metadata = append(among.Metadata, lineage.MetadataIs{Key: metadata[key], Value: encoded})
		}
		if err != nil {
			return nil, "", err
		}
	}
	return among, text, nil
}

// Add limits a query further, to threads that filters select too.
func Add(q, among *lineage.ThreadQuery) error {
	if among.User != nil {
		if q.User != nil && *q.User != *among.User {
			return &RepeatedError{"user"}
		}
		q.User = among.User
	}
	q.Metadata = append(q.Metadata, among.Metadata...)
	if among.From.After(q.From) {
		q.From = among.From
	}
	if !among.To.IsZero() && (q.To.IsZero() || among.To.Before(q.To)) {
		q.To = among.To
	}
	return nil
}

// clause is a part of a query between the operators outside of parentheses. after is the one before it, empty for the first.
type clause struct {
	after   string
	filters []string
	text    string // without the filters
}

// clauses splits a query.
func clauses(query string) (all []*clause, err error) {
	c := &clause{}
	all = append(all, c)
	depth, start := 0, true // start of a word
	for rest := query; rest != ""; {
		if filter := word(rest); start && isFilter(strings.TrimLeft(filter, "(-")) {
			switch {
			case depth > 0 || filter[0] == '(':
				return nil, &PlaceError{strings.TrimLeft(filter, "(-"), "in parentheses"}
			case filter[0] == '-':
				return nil, &PlaceError{filter, "with a minus sign"}
			}
			c.filters = append(c.filters, filter)
			rest = rest[len(filter):]
			continue
		}
		first, n := utf8.DecodeRuneInString(rest)
		switch {
		case first == '"':
			if n = 2 + strings.IndexByte(rest[1:], '"'); n < 2 {
				n = len(rest)
			}
		case first == '(':
			depth++
		case first == ')':
			depth = max(depth-1, 0)
		case isBare(first):
			if n = strings.IndexFunc(rest, func(r rune) bool { return !isBare(r) }); n < 0 {
				n = len(rest)
			}
			if operator := rest[:n]; depth == 0 && (operator == "AND" || operator == "OR" || operator == "NOT") {
				c = &clause{after: operator}
				all = append(all, c)
				rest, start = rest[n:], true
				continue
			}
		}
		c.text += rest[:n]
		rest, start = rest[n:], unicode.IsSpace(first)
	}
	return all, nil
}

// joined returns the filters in a query, and the query without them.
func joined(all []*clause) (filters []string, text string, err error) {
	first := true
	for i, c := range all {
		if len(c.filters) > 0 {
			for _, o := range all {
				if o.after == "OR" {
					return nil, "", &PlaceError{c.filters[0], "under OR"}
				}
			}
			if c.after == "NOT" {
				return nil, "", &PlaceError{c.filters[0], "after NOT"}
			}
			filters = append(filters, c.filters...)
			if strings.TrimFunc(c.text, unicode.IsSpace) == "" { // and so its AND is not needed
				if first && i+1 < len(all) {
					if all[i+1].after == "NOT" {
						return nil, "", &PlaceError{c.filters[0], "without words before NOT"}
					}
					all[i+1].after = ""
				}
				continue
			}
		}
		first = false
		text += " " + c.after + " " + c.text
	}
	return filters, spaced(text), nil
}

// cut returns the key and the value of a filter.
func cut(word string) (key, value string, ok bool) {
	key, value, _ = strings.Cut(word, ":")
	value = strings.Trim(value, `"`)
	return key, value, value != "" && (metadata[key] != "" || key == "user" || key == "after" || key == "before")
}

func isFilter(word string) bool {
	_, _, ok := cut(word)
	return ok
}

// isBare reports whether a character is part of a word of the query language, and no space.
func isBare(r rune) bool { return query.IsBare(byte(min(r, utf8.RuneSelf))) && !unicode.IsSpace(r) }

// word returns the text up to the first space outside of quotes.
func word(text string) string {
	quoted := false
	end := strings.IndexFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return unicode.IsSpace(r) && !quoted
	})
	if end < 0 {
		return text
	}
	return text[:end]
}

// spaced returns a text with one space between words outside of quotes.
func spaced(text string) string {
	quoted := false
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return unicode.IsSpace(r) && !quoted
	}), " ")
}

// Named returns the start of a day that is named today or yesterday, in the time zone of now.
func Named(text string, now time.Time) (day time.Time, named bool) {
	switch text {
	case "today":
		return time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location()), true
	case "yesterday":
		return time.Date(now.Year(), now.Month(), now.Day()-1, 0, 0, 0, 0, now.Location()), true
	}
	return time.Time{}, false
}

// day parses a day, a month or a year of a time zone.
func day(text string, zone *time.Location) (time.Time, error) {
	if at, named := Named(text, time.Now().In(zone)); named {
		return at, nil
	}
	for _, form := range []string{time.DateOnly, "2006-01", "2006"} {
		if at, err := time.ParseInLocation(form, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, &NotDateError{text}
}
