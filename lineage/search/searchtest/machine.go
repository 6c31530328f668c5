package searchtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/search"
	"github.com/lineage-store/lineage/structure"
)

// vocabulary are the words of the threads of a machine.
var vocabulary = []string{"ant", "bee", "cat"}

// Machine changes a store at random: threads of two users, with forks across them, summaries, checkpoints, deleted and erased
// things.
type Machine struct {
	t     *rapid.T
	store *lineage.Store
	// Also, when not nil, checks another search in a scope that sees these texts.
	Also func(x *search.Index, q search.Query, seen map[string]string)
	// Behind lets indexes leave out what is new. What they find must be there all the same.
	Behind bool
	// UpdateFor is that of searches.
	UpdateFor time.Duration
}

// NewMachine returns a machine for an empty store.
func NewMachine(t *rapid.T, store *lineage.Store) *Machine {
	m := &Machine{t: t, store: store}
	m.thread("ann")
	m.thread("bob")
	return m
}

func (m *Machine) must(err error) { require.NoError(m.t, err) }

func (m *Machine) threads() (all []*structure.Thread) {
	for th, err := range m.store.View().Threads(bg, lineage.ThreadID{}) {
		m.must(err)
		all = append(all, th)
	}
	return all
}

func (m *Machine) contexts() (all []backend.Context) {
	for c, err := range m.store.View().Contexts(bg, lineage.ThreadID{}, lineage.ContextID{}) {
		m.must(err)
		all = append(all, c)
	}
	return all
}

// thread creates a thread with a message and one of few ids.
func (m *Machine) thread(user string) {
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

// Step makes a random change, if possible.
func (m *Machine) Step() {
	r := m.t
	contexts, threads := m.contexts(), m.threads()
	what := rapid.SampledFrom([]int{0, 1, 2, 2, 2, 2, 2, 5, 5, 5, 6, 6, 7, 8, 9, 10, 10, 11, 11, 12}).Draw(r, "what")
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
		_, err = c.Summarize(bg, Saying("sum "+text), lineage.SummarizeOptions{Whole: true})
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
	case 12:
		if len(threads) > 0 {
			var th *lineage.Thread
			if th, err = m.store.Thread(bg, rapid.SampledFrom(threads).Draw(r, "thread").ID); err == nil {
				user, keeps := rapid.SampledFrom([]string{"ann", "bob"}).Draw(r, "user"), rapid.Bool().Draw(r, "keeps")
				err = th.Update(bg, func(i *lineage.ThreadInfo) error { i.UserID, i.Keeps = user, keeps; return nil })
			}
		}
	}
	_ = err // impossible changes are skipped
}

// seen returns what a scope sees: steps with their texts, and summaries.
func (m *Machine) seen(reach backend.Reach, contexts []lineage.ContextID) map[string]string {
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

// Check compares the results for each word in each scope with what is seen there.
func (m *Machine) Check(x *search.Index) {
	everything, users := make(map[string]string), map[string]map[string]string{"ann": {}, "bob": {}}
	seenBy := make(map[string][]lineage.ThreadID)
	add := func(to, from map[string]string) {
		for id, text := range from {
			to[id] = text
		}
	}
	contexts := make(map[lineage.ThreadID][]lineage.ContextID)
	for _, c := range m.contexts() {
		contexts[c.Thread] = append(contexts[c.Thread], c.ID)
		if c.Thread.IsZero() {
			reach := make(backend.Reach)
			m.must(reach.Follow(bg, m.store.View(), c.Tip))
			add(everything, m.seen(reach, []lineage.ContextID{c.ID}))
		}
	}
	for _, th := range m.threads() {
		reach, err := backend.ReachOf(bg, m.store.View(), th)
		m.must(err)
		seen := m.seen(reach, contexts[th.ID])
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

func (m *Machine) compare(x *search.Index, q search.Query, seen map[string]string, seenBy map[string][]lineage.ThreadID) {
	for _, word := range []string{"sum", "ant", "bee"} {
		want, got := []string{}, []string{}
		for id, text := range seen {
			if slices.Contains(strings.Fields(text), word) {
				want = append(want, id+" "+text)
			}
		}
		q.Text, q.Limit, q.UpdateFor = word, 10_000, m.UpdateFor
		hits, err := x.Search(bg, q)
		m.must(err)
		for _, h := range hits {
			id := h.Summary.String()
			if h.Entry != nil {
				id = h.Entry.Span.String()
			}
			got = append(got, id+" "+h.Text)
			if viewers := seenBy[id]; viewers != nil || q.Thread.IsZero() && q.User == "" {
				m.match(viewers, h.Threads, "%v is seen by", id)
			}
		}
		m.match(want, got, "%+v", q)
	}
	if m.Also != nil {
		m.Also(x, q, seen)
	}
}

// Unfinished searches with one index after the other when there is time for one transaction of an update each. What they find
// must be there, and in the end they find everything.
func (m *Machine) Unfinished(indexes ...*search.Index) {
	m.Behind, m.UpdateFor = true, 1
	before := uint64(0)
	for i := 0; ; i++ {
		x, behind := indexes[i%len(indexes)], uint64(0)
		q := search.Query{Text: "ant", UpdateFor: m.UpdateFor, Behind: func(commits uint64, _ error) { behind = commits }}
		_, err := x.Search(bg, q)
		m.must(err)
		if behind == 0 {
			break
		}
		if i > 0 {
			require.Less(m.t, behind, before, "each search brings the index forward")
		}
		before = behind
		m.Check(x)
	}
	m.Behind, m.UpdateFor = false, 0
	m.Check(indexes[0])
}

// match requires that an answer has what it should have, and nothing else.
func (m *Machine) match(want, got any, about ...any) {
	if m.Behind {
		require.Subset(m.t, want, got, about...)
	} else {
		require.ElementsMatch(m.t, want, got, about...)
	}
}

// queries are searches for words of the vocabulary in every form.
var queries = []string{"ant", "bee OR cat", "ant bee", `"ant bee"`, "a*", "ant NOT bee", "sum AND b*", "NEAR(ant cat, 1)", "^cat", "c* OR a* NOT sum", "ants dog", "(ant OR dog) bee", "NOT"}

// Agree requires that two indexes of the store answer alike: hits, their order, ranks, snippets, and who sees them.
func (m *Machine) Agree(a, b *search.Index) {
	bob := "bob"
	scopes := []search.Query{{}, {User: "ann"}, {User: "bob", Roles: []string{"user"}}, {Roles: []string{"tool"}}}
	if threads := m.threads(); len(threads) > 0 {
		one := rapid.SampledFrom(threads).Draw(m.t, "thread in scope")
		scopes = append(scopes, search.Query{Thread: one.ID}, search.Query{Thread: one.ID, User: "ann"}, search.Query{Among: m.store.Threads(bg, lineage.ThreadQuery{User: &bob})})
	}
	for _, q := range scopes {
		q.Text, q.Limit = rapid.SampledFrom(queries).Draw(m.t, "query"), rapid.SampledFrom([]int{0, 1, 3, 1000}).Draw(m.t, "limit")
		want, err := a.Search(bg, q)
		m.must(err)
		got, err := b.Search(bg, q)
		m.must(err)
		require.Equal(m.t, lines(want), lines(got), "%+v", q)
	}
}

func lines(hits []search.Hit) (all []string) {
	for _, h := range hits {
		id := "summary " + h.Summary.String()
		if h.Entry != nil {
			id = fmt.Sprint(h.Entry.Span, " ", h.Entry.Index)
		}
		threads, contexts := fmt.Sprint(h.Threads), slices.Clone(h.Contexts)
		slices.SortFunc(contexts, func(a, b lineage.ContextID) int { return slices.Compare(a[:], b[:]) })
		all = append(all, fmt.Sprintf("%s %.9f %s %s %v %v", id, h.Rank, h.Snippet, h.Text, threads, contexts))
	}
	return all
}
