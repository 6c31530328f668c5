package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/structure"
)

func item(kind structure.UsageKind, name, mediaType, text string) lineage.Item {
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

// saying is a summarizer that always returns the same text.
type saying string

func (s saying) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: string(s)}, nil
}

// feature: storage/search-all
func TestEverythingIsFound(t *testing.T) {
	store, x := open(t, t.TempDir())
	defer store.Close()
	defer x.Close()
	thread, err := store.CreateThread(bg, lineage.ThreadOptions{UserID: "ada", Metadata: []byte(`{"cwd":"/zoo"}`)})
	require.NoError(t, err)
	c, err := thread.Active(bg)
	require.NoError(t, err)
	_, err = c.Extend(bg, lineage.Together(
		lineage.User("first usage with an okapi"),
		item(structure.DocumentUsage, "chapter-one.md", content.TypeMarkdown, "a document with a quokka"),
		item(structure.AssetUsage, "numbat.csv", content.TypeCSV, "animal\nwombat"),
		item(structure.AssetUsage, "photo-of-a-bilby.png", content.TypePNG, "\x89PNG\x00okapi"),
		item(structure.DocumentUsage, "long.txt", content.TypeText, strings.Repeat("filler words ", 20_000)+"tapir"),
	))
	require.NoError(t, err)
	_, err = c.Extend(bg, item(structure.MessageUsage, "", content.TypeJSON,
		`{"role":"user","parts":[{"type":"source-url","url":"https://dingo","title":"A Page on Possums"},{"type":"data-x","data":{"where":["Perth"]}}]}`))
	require.NoError(t, err)
	sum, err := c.Summarize(bg, saying("they met a cassowary"), lineage.SummarizeOptions{})
	require.NoError(t, err)
	alone, err := store.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	_, err = alone.Extend(bg, lineage.User("an echidna outside threads"))
	require.NoError(t, err)
	asideSum, err := alone.Summarize(bg, saying("of a lyrebird"), lineage.SummarizeOptions{})
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

// vocabulary are the words of the threads of TestFindsWhatIsSeen.
var vocabulary = []string{"ant", "bee", "cat"}

// TestFindsWhatIsSeen changes threads of two users at random, with forks across them, and compares
// search results, of words and nearest to a vector, with what threads and contexts see. An updated
// index returns the same results as a new one.
//
// feature: lineage/nearest
//
//test:norace
func TestFindsWhatIsSeen(t *testing.T) {
	defer search.SetWindowLimit(search.SetWindowLimit(0))
	rapid.Check(t, func(r *rapid.T) {
		search.SetWindowLimit(rapid.SampledFrom([]int{0, 1, 7}).Draw(r, "window"))
		dir := t.TempDir()
		store, err := lineage.Open(bg, dir, lineage.Options{Durability: lineage.Normal})
		require.NoError(r, err)
		defer store.Close()
		x, err := search.Open(bg, store, dir, new(counter).options())
		require.NoError(r, err)
		defer func() { require.NoError(r, x.Close()) }()
		m := &machine{t: r, store: store, axis: rapid.Float32Range(-1, 1).Draw(r, "axis")}
		m.thread("ann")
		m.thread("bob")
		for range rapid.IntRange(10, 60).Draw(r, "steps") {
			m.step()
			if rapid.IntRange(0, 5).Draw(r, "search") == 0 {
				m.check(x)
			}
		}
		m.check(x)
		_, err = store.Collect(bg, lineage.CollectOptions{KeepReflog: -1, KeepUnused: -1})
		require.NoError(r, err)
		m.check(x)
		fresh, err := search.Open(bg, store, t.TempDir(), new(counter).options())
		require.NoError(r, err)
		defer fresh.Close()
		m.check(fresh)
	})
}

type machine struct {
	t     *rapid.T
	store *lineage.Store
	axis  float32 // of the vector searched for
}

func (m *machine) must(err error) { require.NoError(m.t, err) }

func (m *machine) threads() (all []*structure.Thread) {
	for th, err := range m.store.View().Threads(bg, lineage.ThreadID{}) {
		m.must(err)
		all = append(all, th)
	}
	return all
}

func (m *machine) contexts() (all []backend.Context) {
	for c, err := range m.store.View().Contexts(bg, lineage.ThreadID{}, lineage.ContextID{}) {
		m.must(err)
		all = append(all, c)
	}
	return all
}

// thread creates a thread with a message and one of few ids.
func (m *machine) thread(user string) {
	th, err := m.store.CreateThread(bg, lineage.ThreadOptions{
		SourceID: user + fmt.Sprint(rapid.IntRange(0, 3).Draw(m.t, "source")), UserID: user, Keep: rapid.Bool().Draw(m.t, "keep"),
	})
	if err != nil {
		require.ErrorIs(m.t, err, lineage.ErrExists)
		return
	}
	c, err := th.Active(bg)
	m.must(err)
	_, err = c.Extend(bg, lineage.User(rapid.SampledFrom(vocabulary).Draw(m.t, "first")))
	m.must(err)
}

// step makes a random change, if possible.
func (m *machine) step() {
	r := m.t
	contexts, threads := m.contexts(), m.threads()
	what := rapid.SampledFrom([]int{0, 1, 2, 2, 2, 2, 2, 5, 5, 5, 6, 6, 7, 8, 9, 10, 10, 11, 11}).Draw(r, "what")
	if len(contexts) == 0 && what > 1 {
		what = 0
	}
	switch what {
	case 0:
		m.thread(rapid.SampledFrom([]string{"ann", "bob"}).Draw(r, "user"))
		return
	case 1:
		_, err := m.store.NewContext(bg, lineage.ContextOptions{})
		m.must(err)
		return
	}
	state := rapid.SampledFrom(contexts).Draw(r, "context")
	c, err := m.store.Context(bg, state.ID)
	m.must(err)
	text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 2).Draw(r, "text"), " ")
	switch what {
	case 2:
		_, err = c.Extend(bg, lineage.User(text))
	case 5:
		o := lineage.ForkOptions{}
		if len(threads) > 0 && rapid.Bool().Draw(r, "into a thread") {
			o.Thread = rapid.SampledFrom(threads).Draw(r, "thread").ID
		}
		_, err = c.Fork(bg, o)
	case 6:
		var to lineage.SpanRef // the message before the last
		for e, readErr := range c.Entries(bg, lineage.Window{Last: 2}) {
			m.must(readErr)
			if to.IsZero() {
				to = e.Span
			}
		}
		err = c.MoveTo(bg, to, "rewind")
	case 7:
		_, err = c.Summarize(bg, saying("sum "+text), lineage.SummarizeOptions{Whole: true})
	case 8:
		err = c.Delete(bg)
	case 9:
		if len(threads) > 0 {
			var th *lineage.Thread
			if th, err = m.store.Thread(bg, rapid.SampledFrom(threads).Draw(r, "thread").ID); err == nil {
				err = th.Delete(bg)
			}
		}
	case 10:
		err = m.store.Erase(bg, content.Sum([]byte(text)))
	case 11:
		if len(threads) > 0 {
			var th *lineage.Thread
			if th, err = m.store.Thread(bg, rapid.SampledFrom(threads).Draw(r, "thread").ID); err == nil {
				_, err = th.SetCheckpoint(bg, rapid.SampledFrom([]string{"k1", "k2"}).Draw(r, "name"), lineage.CheckpointOptions{})
			}
		}
	}
	_ = err // impossible changes are skipped
}

// seen returns what a scope sees: steps with their texts, and summaries.
func (m *machine) seen(reach backend.Reach, contexts []lineage.ContextID) map[string]string {
	all := make(map[string]string)
	for id, extent := range reach {
		last, err := m.store.View().Last(bg, id)
		m.must(err)
		for seq := uint64(1); seq <= min(extent.Last, last.Seq); seq++ {
			at := structure.SpanRef{Run: id, Seq: seq}
			entries, err := m.store.Span(bg, at)
			m.must(err)
			for _, e := range entries {
				if !e.Erased {
					all[at.String()] = string(e.Body)
				}
			}
		}
	}
	for _, id := range contexts {
		for s, err := range m.store.View().Summaries(bg, id) {
			m.must(err)
			if blocks, err := m.store.View().Blocks(bg, []content.ID{s.Content}); err == nil {
				all[s.ID.String()] = string(blocks[0].Body)
			}
		}
	}
	return all
}

// check compares the results for each word in each scope with what is seen there.
func (m *machine) check(x *search.Index) {
	everything, users := make(map[string]string), map[string]map[string]string{"ann": {}, "bob": {}}
	seenBy := make(map[string][]lineage.ThreadID)
	add := func(to, from map[string]string) {
		for id, text := range from {
			to[id] = text
		}
	}
	of := make(map[lineage.ThreadID][]lineage.ContextID)
	for _, c := range m.contexts() {
		of[c.Thread] = append(of[c.Thread], c.ID)
		if c.Thread.IsZero() {
			reach := make(backend.Reach)
			m.must(reach.Follow(bg, m.store.View(), c.Tip))
			add(everything, m.seen(reach, []lineage.ContextID{c.ID}))
		}
	}
	for _, th := range m.threads() {
		reach, err := backend.ReachOf(bg, m.store.View(), th)
		m.must(err)
		seen := m.seen(reach, of[th.ID])
		add(everything, seen)
		add(users[th.UserID], seen)
		for id := range seen {
			seenBy[id] = append(seenBy[id], th.ID)
		}
		m.compare(x, search.Query{Thread: th.ID}, seen, map[string][]lineage.ThreadID{})
	}
	m.compare(x, search.Query{}, everything, seenBy)
	for user, seen := range users {
		m.compare(x, search.Query{User: user}, seen, map[string][]lineage.ThreadID{})
	}
}

func (m *machine) compare(x *search.Index, q search.Query, seen map[string]string, seenBy map[string][]lineage.ThreadID) {
	for _, word := range []string{"sum", "ant", "bee"} {
		want, got := []string{}, []string{}
		for id, text := range seen {
			if slices.Contains(strings.Fields(text), word) {
				want = append(want, id+" "+text)
			}
		}
		q.Text, q.Limit = word, 10_000
		hits, err := x.Search(bg, q)
		m.must(err)
		for _, h := range hits {
			id := h.Summary.String()
			if h.Entry != nil {
				id = h.Entry.Span.String()
			}
			got = append(got, id+" "+h.Text)
			if by := seenBy[id]; by != nil || q.Thread.IsZero() && q.User == "" {
				require.ElementsMatch(m.t, by, h.Threads, "%v is seen by", id)
			}
		}
		require.ElementsMatch(m.t, want, got, "%+v", q)
	}
	m.compareNearest(x, q, seen)
}
