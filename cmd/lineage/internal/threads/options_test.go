package threads

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// A filter in the query of a search limits it as the flag does.
func TestFiltersAreFlags(t *testing.T) {
	defer func(was *time.Location) { time.Local = was }(time.Local)
	time.Local = time.FixedZone("", 14*60*60)
	here, err := os.Getwd()
	require.NoError(t, err)
	full, err := json.Marshal(here)
	require.NoError(t, err)
	read := func(query string, flags ...string) *lineage.ThreadQuery {
		o := &SearchOptions{Query: query}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.Session.Add(f)
		f.Var(&o.Since, "since", "")
		f.Var(&o.Until, "until", "")
		require.NoError(t, f.Parse(flags))
		among, text, err := o.read()
		require.NoError(t, err)
		require.Equal(t, "x", text)
		return among
	}
	require.Nil(t, read("x"))
	for filter, flag := range map[string]string{
		"after:2026-10-31": "--since=2026-10-31", "before:2026-02": "--until=2026-02-01", "after:2026": "--since=2026-01-01", "agent:pi": "--agent=pi",
		"branch:main": "--git-branch=main", "project:.": "--project=.", "project:/src/app": "--project=/src/app",
	} {
		got, want := read("x "+filter), read("x", flag)
		require.NotNil(t, want)
		require.True(t, got.From.Equal(want.From) && got.To.Equal(want.To), "%s: %v", filter, got)
		got.From, got.To, want.From, want.To = time.Time{}, time.Time{}, time.Time{}, time.Time{}
		require.Equal(t, want, got, filter)
	}
	require.Equal(t, string(full), string(read("x project:.").Metadata[0].Value))
	both := read("x after:2026-03 before:2027 agent:pi", "--since=2026-04-01", "--until=2028-01-01", "--project=/p")
	require.True(t, both.From.Equal(time.Date(2026, 4, 1, 0, 0, 0, 0, time.Local)) && both.To.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.Local)))
	require.Len(t, both.Metadata, 2)
}

// Where no thread matches, the note says what may be wrong with the flags.
func TestNoteOfNoThreads(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for flag, want := range map[string]string{
		"":                    "no threads; 'lineage follow' reads the sessions of this machine's agents, 'lineage thread create' makes a thread",
		"--agent=claude":      "no such threads; the names of agents are claude-code, codex, ",
		"--agent=claude-code": "no such threads",
		"--project=infra":     "no such threads; --project is a folder, here " + here + string(os.PathSeparator) + "infra",
		"--project=" + here:   "no such threads",
		"--gone":              "no such threads",
	} {
		o := &ThreadListOptions{}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.Session.Add(f)
		f.BoolVar(&o.Gone, "gone", false, "")
		if flag != "" {
			require.NoError(t, f.Parse([]string{flag}))
		}
		o.Metadata, err = o.Session.Metadata()
		require.NoError(t, err)
		if got := o.None(); want[len(want)-1] != ' ' {
			require.Equal(t, want, got, flag)
		} else {
			require.Contains(t, got, want, flag)
		}
	}
}
