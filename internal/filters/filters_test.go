package filters_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/internal/filters"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage"
)

func TestRead(t *testing.T) {
	for query, want := range map[string]string{
		"":                             "- ",
		"two  words":                   "- two words",
		"agent:codex lisbon":           `agent="codex" lisbon`,
		`project:"/home/my app" x`:     `cwd="/home/my app" x`,
		"branch:main agent:pi":         `gitBranch="main" agent="pi" `,
		"a user:ada b":                 "user=ada a b",
		"user:":                        "- user:",
		`"agent:codex is"`:             `- "agent:codex is"`,
		"http://x agent:a:b":           `agent="a:b" http://x`,
		"after:2026-10 before:2027":    "from=2026-10-01 to=2027-01-01 ",
		"x after:2026-10-31":           "from=2026-10-31 x",
		`agent:"unclosed and more`:     `agent="unclosed and more" `,
		"agent:\xff":                   `agent="\ufffd" `,
		`agent:a"b`:                    `agent="a\"b" `,
		"(a OR b) agent:x":             `agent="x" (a OR b)`,
		"(a OR b) AND agent:x":         `agent="x" (a OR b)`,
		"agent:x AND (a OR b)":         `agent="x" (a OR b)`,
		"agent:x AND(a OR b)":          `agent="x" (a OR b)`,
		"a AND agent:x user:u NOT b":   `agent="x" user=u a NOT b`,
		"a agent:x NOT b AND user:u":   `agent="x" user=u a NOT b`,
		"agent:x AND user:u":           `agent="x" user=u `,
		`"a OR b" agent:x "NOT"`:       `agent="x" "a OR b" "NOT"`,
		"東京　agent:x":                   `agent="x" 東京`,
		"a or agent:x not b":           `agent="x" a or not b`,
		"a OR b NOT (c)":               "- a OR b NOT (c)",
		"project:/a(b) c":              `cwd="/a(b)" c`,
		":) agent:x":                   `agent="x" :)`,
		`(a OR "agent:x") NOT "user:"`: `- (a OR "agent:x") NOT "user:"`,
		"AGENT:codex OR agent: codex":  "- AGENT:codex OR agent: codex",
	} {
		q, text, err := filters.Read(query, time.UTC)
		require.NoError(t, err, query)
		got := ""
		if q == nil {
			got = "- "
		} else {
			for _, m := range q.Metadata {
				got += fmt.Sprintf("%s=%s ", m.Key, m.Value)
			}
			if q.User != nil {
				got += "user=" + *q.User + " "
			}
			for _, at := range []struct {
				name string
				is   time.Time
			}{{"from", q.From}, {"to", q.To}} {
				if !at.is.IsZero() {
					got += at.name + "=" + at.is.Format(time.DateOnly) + " "
				}
			}
		}
		require.Equal(t, want, got+text, query)
	}
	for _, query := range []string{"after:x", "before:2026-13", "x after:99999"} {
		_, _, err := filters.Read(query, time.UTC)
		var failure *filters.NotDateError
		require.ErrorAs(t, err, &failure, query)
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
	for query, want := range map[string]string{
		"NOT agent:x": "after NOT", "a NOT agent:x": "after NOT", "a NOT b agent:x": "after NOT", "agent:x NOT b": "without words before NOT",
		"agent:x AND user:u NOT b": "without words before NOT", "a OR project:x": "under OR", "a OR b agent:x": "under OR", "agent:x a OR b": "under OR",
		"agent:x OR agent:y": "under OR", "(agent:x OR agent:y) a": "in parentheses", "a (b agent:x)": "in parentheses", "(agent:x)": "in parentheses",
		"a OR(agent:x)": "in parentheses", "NEAR(a agent:x)": "in parentheses", "a -agent:x": "with a minus sign",
	} {
		_, _, err := filters.Read(query, time.UTC)
		var failure *filters.PlaceError
		require.ErrorAs(t, err, &failure, query)
		require.Equal(t, want, failure.Place, query)
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
	for _, query := range []string{"agent:x agent:y", "user:a b user:a", "after:2026 AND after:2027", "before:2026 x before:2026"} {
		_, _, err := filters.Read(query, time.UTC)
		var failure *filters.RepeatedError
		require.ErrorAs(t, err, &failure, query)
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
	zone := time.FixedZone("", -5*60*60)
	q, _, err := filters.Read("after:2026-10-31 before:2027", zone)
	require.NoError(t, err)
	require.Equal(t, time.Date(2026, 10, 31, 5, 0, 0, 0, time.UTC), q.From.UTC())
	require.Equal(t, time.Date(2027, 1, 1, 5, 0, 0, 0, time.UTC), q.To.UTC())
}

// A day may be named: today, yesterday. It begins at midnight of the time zone, also on the days of a change of clocks.
func TestNamedDays(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	now := time.Date(2026, 10, 26, 0, 30, 0, 0, zone)
	for text, want := range map[string]string{"today": "2026-10-26T00:00:00+01:00", "yesterday": "2026-10-25T00:00:00+02:00"} {
		day, named := filters.Named(text, now)
		require.True(t, named)
		require.Equal(t, want, day.Format(time.RFC3339))
	}
	_, named := filters.Named("2026-10-26", now)
	require.False(t, named)
	q, text, err := filters.Read("x after:yesterday before:today", zone)
	require.NoError(t, err)
	require.Equal(t, "x", text)
	require.True(t, q.From.Before(q.To))
	require.LessOrEqual(t, q.To.Sub(q.From), 25*time.Hour)
}

// A query with filters is the AND of them and of the rest, as the query language reads the same query with words in their places,
// or it is refused.
func TestFiltersAreJoined(t *testing.T) {
	names := []string{"agent", "user"}
	matches := func(text, said string) bool {
		q, err := query.Parse(text)
		require.NoError(t, err)
		return q == nil || query.NewMatcher(q).MatchWords(query.Words(said))
	}
	read, refused := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		var with, without string // filters, and words in their places
		var draw func(depth int)
		draw = func(depth int) {
			for i := range rapid.IntRange(1, 4).Draw(r, "parts") {
				if i > 0 {
					operator := rapid.SampledFrom([]string{" ", " ", " AND ", " OR ", " NOT "}).Draw(r, "operator")
					with, without = with+operator, without+operator
				}
				part := rapid.SampledFrom([]string{"a", "b", "c", "agent", "user", "("}).Draw(r, "part")
				switch {
				case part == "(" && depth < 2:
					with, without = with+"(", without+"("
					draw(depth + 1)
					with, without = with+")", without+")"
				case slices.Contains(names, part):
					with, without = with+part+":x", without+part
				case part != "(":
					with, without = with+part, without+part
				default:
					with, without = with+"a", without+"a"
				}
			}
		}
		draw(0)
		among, text, err := filters.Read(with, time.UTC)
		if err != nil {
			refused++
			return
		}
		read++
		for set := range 1 << 5 {
			var texts []string
			want := true
			for i, word := range []string{"agent", "user", "a", "b", "c"} {
				got := set&(1<<i) != 0
				if got {
					texts = append(texts, word)
				}
				if among != nil && !got && (word == "agent" && len(among.Metadata) > 0 || word == "user" && among.User != nil) {
					want = false
				}
			}
			want = want && matches(text, strings.Join(texts, " "))
			require.Equal(r, want, matches(without, strings.Join(texts, " ")), "%s is %q, of %v", with, text, texts)
		}
	})
	require.Positive(t, read)
	require.Positive(t, refused)
}
