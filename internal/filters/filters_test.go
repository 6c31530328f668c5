package filters_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/filters"
)

func TestRead(t *testing.T) {
	for query, want := range map[string]string{
		"":                            "- ",
		"two  words":                  "- two words",
		"agent:codex lisbon":          `agent="codex" lisbon`,
		`project:"/home/my app" x`:    `cwd="/home/my app" x`,
		"branch:main agent:pi":        `gitBranch="main" agent="pi" `,
		"a user:ada b":                "user=ada a b",
		"user:":                       "- user:",
		`"agent:codex is"`:            `- "agent:codex is"`,
		"http://x agent:a:b":          `agent="a:b" http://x`,
		"after:2026-10 before:2027":   "from=2026-10-01 to=2027-01-01 ",
		"x after:2026-10-31":          "from=2026-10-31 x",
		`agent:"unclosed and more`:    `agent="unclosed and more" `,
		"agent:\xff":                  `agent="\ufffd" `,
		`agent:a"b`:                   `agent="a\"b" `,
		"AGENT:codex OR agent: codex": "- AGENT:codex OR agent: codex",
	} {
		q, text, err := filters.Read(query)
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
		_, _, err := filters.Read(query)
		var is *filters.NotDateError
		require.ErrorAs(t, err, &is, query)
	}
}
