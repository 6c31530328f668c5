// Package searchtest tests search indexes of any kind.
package searchtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/structure"
)

var bg = context.Background()

// Item returns a usage with a name and content.
func Item(kind structure.UsageKind, name, mediaType, text string) lineage.Item {
	i := lineage.Item{Kind: kind, Type: mediaType, Body: []byte(text)}
	switch kind {
	case structure.MessageUsage:
		i.Role = "user"
	case structure.DocumentUsage:
		i.Document = name
	default:
		i.Filename = name
	}
	return i
}

// Saying is a summarizer that always returns the same text.
type Saying string

func (s Saying) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: string(s)}, nil
}

// Everything requires that each kind of text in an empty store is found where it is seen, until it is deleted or erased.
func Everything(t testing.TB, store *lineage.Store, x *search.Index) {
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada", Metadata: []byte(`{"cwd":"/zoo"}`)})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.Together(
		lineage.User("first usage with an okapi"),
		Item(structure.DocumentUsage, "chapter-one.md", content.TypeMarkdown, "a document with a quokka"),
		Item(structure.AssetUsage, "numbat.csv", content.TypeCSV, "animal\nwombat"),
		Item(structure.AssetUsage, "photo-of-a-bilby.png", content.TypePNG, "\x89PNG\x00okapi"),
		Item(structure.DocumentUsage, "long.txt", content.TypeText, strings.Repeat("filler words ", 20_000)+"tapir"),
	))
	require.NoError(t, err)
	_, err = c.Extend(bg, Item(structure.MessageUsage, "", content.TypeJSON,
		`{"role":"user","parts":[{"type":"source-url","url":"https://dingo","title":"A Page on Possums"},{"type":"data-x","data":{"where":["Perth"]}}]}`))
	require.NoError(t, err)
	sum, err := c.Summarize(bg, Saying("they met a cassowary"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	alone, err := store.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	_, err = alone.Extend(bg, lineage.User("an echidna outside threads"))
	require.NoError(t, err)
	asideSum, err := alone.Summarize(bg, Saying("of a lyrebird"), lineage.SummarizeOptions{})
	require.NoError(t, err)

	records, err := store.NewContext(bg, lineage.ContextOptions{Metadata: []byte(`{"aside":"log"}`)})
	require.NoError(t, err)
	_, err = records.Extend(bg, lineage.User("okapi, said by a hook, and a bandicoot"))
	require.NoError(t, err)

	find := func(q search.Query) (what []string) {
		hits, err := x.Search(bg, q)
		require.NoError(t, err)
		for _, h := range hits {
			require.Contains(t, h.Snippet, "<mark>", q.Text)
			switch {
			case h.Entry == nil:
				what = append(what, "summary "+h.Summary.String())
			default:
				what = append(what, strings.TrimSpace(fmt.Sprint(h.Entry.Kind, " ", h.Entry.Document, h.Entry.Filename)))
			}
			require.Equal(t, len(h.Threads) == 0, len(h.Contexts) > 0, q.Text)
			if len(h.Contexts) > 0 {
				require.Equal(t, []lineage.ContextID{alone.ID()}, h.Contexts)
			} else {
				require.Equal(t, []lineage.ThreadID{thread.ID()}, h.Threads)
			}
		}
		return what
	}
	for query, want := range map[string][]string{
		"okapi": {"message"}, "quokka": {"document chapter-one.md"}, "chapter": {"document chapter-one.md"}, "wombat": {"asset numbat.csv"},
		"numbat": {"asset numbat.csv"}, "bilby": {"asset photo-of-a-bilby.png"}, "tapir": {"document long.txt"}, "possum": {"message"}, "perth": {"message"},
		"dingo": nil, "parts": nil, "bandicoot": nil, "cassowary": {"summary " + sum.ID.String()}, "echidna": {"message"}, "lyrebird": {"summary " + asideSum.ID.String()},
		"quokka chapter": {"document chapter-one.md"},
	} {
		require.Equal(t, want, find(search.Query{Text: query}), query)
		about := func(project, user string) search.Query {
			return search.Query{Text: query, User: user, Among: store.Threads(t.Context(), lineage.ThreadQuery{Metadata: []lineage.MetadataIs{{Key: "cwd", Value: []byte(project)}}})}
		}
		for _, scoped := range []search.Query{{Text: query, User: "ada"}, {Text: query, Thread: thread.ID()}, about(`"/zoo"`, ""), about(`"/zoo"`, "ada")} {
			if query == "echidna" || query == "lyrebird" {
				want = nil
			}
			require.Equal(t, want, find(scoped), query)
		}
		for _, other := range []search.Query{{Text: query, User: "bob"}, about(`"/park"`, ""), about(`"/zoo"`, "bob")} {
			require.Empty(t, find(other), query)
		}
	}
	require.Empty(t, find(search.Query{Text: "quokka", Roles: []string{"user"}}))
	require.Len(t, find(search.Query{Text: "okapi", Roles: []string{"user"}}), 1)

	// Results of tools that a format gives to the user are those of a tool, unless the user says something beside them.
	_, err = c.Extend(bg,
		Item(structure.MessageUsage, "", content.TypeJSON, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"an axolotl"}]}`),
		Item(structure.MessageUsage, "", content.TypeJSON, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"2","content":"a kakapo"},{"type":"text","text":"Look."}]}`))
	require.NoError(t, err)
	for word, role := range map[string]string{"axolotl": "tool", "kakapo": "user", "okapi": "user"} {
		for _, roles := range [][]string{nil, {"tool"}, {"user"}, {"tool", "user"}} {
			hits, err := x.Search(bg, search.Query{Text: word, Roles: roles})
			require.NoError(t, err)
			if roles != nil && !slices.Contains(roles, role) {
				require.Empty(t, hits, word)
				continue
			}
			require.Len(t, hits, 1, word)
			require.Equal(t, role, hits[0].Role, word)
		}
	}

	// A snippet is of what people read.
	_, err = c.Extend(bg, Item(structure.MessageUsage, "", content.TypeJSON,
		`{"role":"user","content":[{"type":"text","text":"<environment_context>\n  <cwd>/pelican</cwd>\n</environment_context>"},{"type":"text","text":"A toucan in /pelican?"}]}`),
		Item(structure.MessageUsage, "", content.TypeJSON, `{"type":"shell","id":"evt_1","callID":"c1","time":{"created":1754000000000},"command":"count turacos","output":"three turacos"}`),
		lineage.System("<rules>\n<style>Say hoatzin</style> as a List<int>.</rules>"))
	require.NoError(t, err)
	for text, snippet := range map[string]string{
		"pelican": "A toucan in /<mark>pelican</mark>?", "cwd": "(environment_context) <mark>cwd</mark>: /pelican",
		"toucan cwd": "(environment_context) <mark>cwd</mark>: /pelican\nA <mark>toucan</mark> in /pelican?",
		"three":      "count turacos\n<mark>three</mark> turacos", "hoatzin": "\nSay <mark>hoatzin</mark> as a List<int>.",
	} {
		hits, err := x.Search(bg, search.Query{Text: text})
		require.NoError(t, err)
		require.Len(t, hits, 1, text)
		require.Equal(t, snippet, hits[0].Snippet)
	}

	// What becomes a conversation is found, and what becomes a record is not.
	require.NoError(t, records.Update(bg, func(c *lineage.ContextInfo) error { c.Metadata = nil; return nil }))
	hits, err := x.Search(bg, search.Query{Text: "bandicoot"})
	require.NoError(t, err)
	require.Len(t, hits, 1)
	require.NoError(t, records.Update(bg, func(c *lineage.ContextInfo) error { c.Metadata = []byte(`{"aside":"log"}`); return nil }))
	require.Empty(t, find(search.Query{Text: "bandicoot"}))

	// Deleted and erased texts are not found.
	require.NoError(t, c.DeleteSummary(bg, sum.ID))
	require.NoError(t, store.Erase(bg, content.Sum([]byte("animal\nwombat"))))
	require.NoError(t, alone.Delete(bg))
	for _, gone := range []string{"cassowary", "wombat", "echidna", "lyrebird"} {
		require.Empty(t, find(search.Query{Text: gone}), gone)
	}
	require.NotEmpty(t, find(search.Query{Text: "numbat"}), "its name is not erased")
	_, err = c.Extend(bg, lineage.User("animal\nwombat"))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"asset numbat.csv", "message"}, find(search.Query{Text: "wombat"}), "it was stored again")
}
