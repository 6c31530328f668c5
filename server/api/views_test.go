package api

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/usage"
)

// A search and a report are of what is asked for and the caller may read.
func TestFilters(t *testing.T) {
	var searched SearchQuery
	var found []string
	var reported UsageQuery
	h := open(t, func(o *Options) {
		o.Search = func(_ context.Context, q SearchQuery) ([]*records.Hit, error) {
			searched, found = q, nil
			if q.Among == nil {
				return nil, nil
			}
			for one, err := range q.Among {
				if err != nil {
					return nil, err
				}
				found = append(found, one.Was.SourceID)
			}
			return nil, nil
		}
		o.Usage = func(_ context.Context, q UsageQuery) ([]*records.Usage, error) {
			reported = q
			return nil, nil
		}
	})
	for _, body := range []string{
		`{"id":"a","user":"ada","metadata":{"agent":"codex","cwd":"/projects/a"}}`, `{"id":"b","user":"ada","metadata":{"agent":"pi","cwd":"/projects/b"}}`,
		`{"id":"c","user":"bob","metadata":{"agent":"codex","cwd":"/projects/b","gitBranch":"x"}}`,
	} {
		h.do("POST", "/v1/threads", body).is(201)
	}
	for query, want := range map[string]map[string][]string{
		"":                                  {"": nil, "ada": {"a", "b"}, "proj": {"a"}},
		"&agent=codex":                      {"": {"a", "c"}, "ada": {"a"}, "proj": {"a"}},
		"&user=ada":                         {"": {"a", "b"}, "ada": {"a", "b"}, "bob": nil, "proj": {"a"}},
		"&project=/projects/b":              {"": {"b", "c"}, "bob": {"c"}, "proj": nil},
		"&metadata=gitBranch=x":             {"": {"c"}, "ada": nil},
		"&until=2001-01-01T00:00:00Z":       {"": nil},
		"&since=2001-01-01T00:00:00Z":       {"": {"a", "b", "c"}},
		"&role=user&role=tool&agent=none":   {"": nil},
		"%20agent:codex":                    {"": {"a", "c"}, "ada": {"a"}, "proj": {"a"}},
		"%20user:bob":                       {"": {"c"}, "ada": nil, "bob": {"c"}, "proj": nil},
		"%20user:ada&agent=pi":              {"": {"b"}},
		"%20branch:x&user=bob":              {"": {"c"}},
		"%20before:2001":                    {"": nil},
		"%20after:2001&project=/projects/b": {"": {"b", "c"}},
	} {
		for who, threads := range want {
			h.do("GET", "/v1/search?q=x"+query, nil, "Caller: "+who).is(200)
			require.ElementsMatch(t, threads, found, "%s %s", who, query)
			require.Equal(t, who == "" && query == "", searched.Among == nil)
			require.Equal(t, "x", searched.Text)
		}
	}
	h.do("GET", "/v1/search?q=x&role=user&role=tool", nil).is(200)
	require.Equal(t, []string{"user", "tool"}, searched.Roles)
	h.do("GET", "/v1/search?q=x&metadata=none", nil).is(400)
	for _, q := range []string{"", "%20", "agent:codex", "x%20OR%20agent:codex", "x%20agent:codex%20agent:pi", "x%20after:then", "x%20user:ada&user=bob"} {
		h.do("GET", "/v1/search?q="+q, nil).is(400)
	}
	h.do("GET", "/v1/search?q=x&thread=%3Da", nil, "Caller: bob").is(404)

	h.do("GET", "/v1/usage?by=day&agent=codex&model=m&user=ada&project=/p&zone=Europe/Lisbon", nil).is(200)
	require.Equal(t, []any{"codex", "m", "Europe/Lisbon", []string{"ada"}, []string{"/p"}}, []any{reported.Agent, reported.Model, reported.Zone.String(), reported.Users, reported.Projects})
	h.do("GET", "/v1/usage?by=day", nil, "Caller: ada").is(200)
	require.Equal(t, []string{"ada"}, reported.Users)
	h.do("GET", "/v1/usage?by=day&user=bob", nil, "Caller: ada").is(404)
	h.do("GET", "/v1/usage?by=day&project=/projects/b", nil, "Caller: proj").is(404)
	// An answer counts in the thread that had it first, which may be bob's.
	for _, query := range []string{"by=thread", "by=day&by=user", "by=project", "by=branch", "by=git-branch", "by=machine", "by=subagent", "by=agent", "by=day&agent=codex", "project=/projects/b"} {
		h.do("GET", "/v1/usage?"+query, nil, "Caller: ada").is(400)
		h.do("GET", "/v1/usage?thread=%3Da&"+query, nil, "Caller: ada").is(200)
	}
	h.do("GET", "/v1/usage?by=thread&by=user", nil, "Caller: proj").is(200)
	h.do("GET", "/v1/usage?by=day&zone=../x", nil).is(400)
	h.do("GET", "/v1/usage?thread=%3Da&by=day", nil, "Caller: ada").is(200)
	require.Empty(t, reported.Users)
	h.do("GET", "/v1/usage?thread=%3Da", nil, "Caller: bob").is(404)
}

// The document names every key that usage groups by.
func TestKeysOfUsage(t *testing.T) {
	field, _ := reflect.TypeFor[usageInput]().FieldByName("By")
	for _, key := range usage.Keys {
		require.Regexp(t, `\b`+string(key)+`\b`, field.Tag.Get("doc"))
	}
	require.NotContains(t, field.Tag.Get("doc"), "_")
}

// The answer of a search says how many commits it does not see yet.
//
//test:norace
func TestSearchBehind(t *testing.T) {
	behind := uint64(7)
	h := open(t, func(o *Options) {
		o.Search = func(_ context.Context, q SearchQuery) ([]*records.Hit, error) {
			if behind > 0 {
				q.Behind(behind)
			}
			return nil, nil
		}
	})
	require.Equal(t, map[string]any{"items": []any{}, "behind": float64(7)}, h.do("GET", "/v1/search?q=x", "").is(200))
	behind = 0
	require.Equal(t, map[string]any{"items": []any{}}, h.do("GET", "/v1/search?q=x", "").is(200))
}
