package bundle_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/structure"
)

// machine makes random changes to a store.
type machine struct {
	s   *lineage.Store
	dir string
	n   int
	// often are texts that are used often. Erased content must not be stored again if two stores
	// are compared byte by byte, because its description is then that of the store.
	often  []string
	erased []content.ID
	// collected is set once unused content was collected that other content was derived from.
	collected bool
}

func newMachine(t *rapid.T) *machine {
	dir, err := os.MkdirTemp("", "lineage")
	require.NoError(t, err)
	return &machine{s: open(t, dir, ticking()), dir: dir, often: []string{"", "one", "two", "three"}}
}

func (m *machine) close(t *rapid.T) {
	require.NoError(t, m.s.Close())
	require.NoError(t, os.RemoveAll(m.dir))
}

func (m *machine) contexts(t *rapid.T) (all []*lineage.Context) {
	for c, err := range m.s.View().Contexts(bg, structure.ThreadID{}, structure.ContextID{}) {
		require.NoError(t, err)
		all = append(all, on(t, m.s, c.ID))
	}
	return all
}

func (m *machine) context(t *rapid.T) *lineage.Context {
	all := m.contexts(t)
	if len(all) == 0 {
		t.Skip("no context")
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "context")]
}

func (m *machine) thread(t *rapid.T) *lineage.Thread {
	var all []*lineage.Thread
	for th, err := range m.s.Threads(bg, lineage.ThreadQuery{}) {
		require.NoError(t, err)
		all = append(all, th.Thread)
	}
	if len(all) == 0 {
		t.Skip("no thread")
	}
	return all[rapid.IntRange(0, len(all)-1).Draw(t, "thread")]
}

func (m *machine) next(of string) string {
	m.n++
	return fmt.Sprintf("%s %d", of, m.n)
}

// text returns a body: a frequent one, a new one or a large one.
func (m *machine) text(t *rapid.T) string {
	switch rapid.IntRange(0, 12).Draw(t, "text") {
	case 0:
		return m.often[0]
	case 1:
		return strings.Repeat(m.next("large"), content.InlineLimit/5)
	case 2, 3, 4, 5:
		return m.next("said")
	}
	return rapid.SampledFrom(m.often).Draw(t, "often")
}

func (m *machine) item(t *rapid.T) lineage.Item {
	i := lineage.User(m.text(t))
	switch rapid.IntRange(0, 6).Draw(t, "item") {
	case 0:
		i = lineage.Assistant(m.text(t)).From("a model")
	case 1:
		i = lineage.Item{Kind: lineage.Document, Document: m.next("notes"), Revision: 3, Body: []byte(m.text(t)), Type: content.TypeMarkdown}
	case 2:
		i = lineage.Item{Kind: lineage.Asset, Filename: "a.bin", Body: []byte(m.text(t)), Metadata: []byte(`{"a":1}`)}
	case 3:
		i = i.WithID(m.next("id"))
	case 4:
		i.Origin = lineage.Origin{Kind: content.OriginImport, UserID: "ada", ParentID: content.Sum([]byte("one"))}
	}
	return i
}

// ok fails unless an operation succeeded or was refused for one of some reasons.
func ok(t *rapid.T, err error) {
	for _, refusal := range []string{"erased", "not found", "already exists", "protected", "invalid", "conflict", "no text"} {
		if err != nil && strings.Contains(err.Error(), refusal) {
			return
		}
	}
	require.NoError(t, err)
}

func (m *machine) actions() map[string]func(*rapid.T) {
	position := func(t *rapid.T, c *lineage.Context) lineage.SpanRef {
		tip, err := c.Tip(bg)
		require.NoError(t, err)
		n, err := c.Len(bg)
		require.NoError(t, err)
		at, err := m.s.At(bg, tip, rapid.Uint64Range(0, n).Draw(t, "position"))
		require.NoError(t, err)
		return at
	}
	return map[string]func(*rapid.T){
		"thread": func(t *rapid.T) {
			_, err := m.s.CreateThread(bg, lineage.ThreadOptions{Title: m.next("title"), UserID: "ada", Metadata: []byte(`{}`)})
			require.NoError(t, err)
		},
		"context": func(t *rapid.T) {
			_, err := m.s.NewContext(bg, lineage.ContextOptions{Metadata: []byte(`{"x":2}`)})
			require.NoError(t, err)
		},
		"extend": func(t *rapid.T) {
			_, err := m.context(t).Extend(bg, m.item(t), m.item(t))
			ok(t, err)
		},
		"extend more": func(t *rapid.T) {
			_, err := m.context(t).Extend(bg, m.item(t))
			ok(t, err)
		},
		"together": func(t *rapid.T) {
			_, err := m.context(t).Extend(bg, lineage.Together(m.item(t), m.item(t)))
			ok(t, err)
		},
		"fork": func(t *rapid.T) {
			model := "other"
			c := m.context(t)
			_, err := c.Fork(bg, lineage.ForkOptions{At: position(t, c), Overrides: lineage.Overrides{Model: &model}})
			require.NoError(t, err)
		},
		"subagent": func(t *rapid.T) {
			_, err := m.context(t).Fork(bg, lineage.ForkOptions{Sees: &lineage.Filter{Roles: []string{"user"}}})
			ok(t, err)
		},
		"return": func(t *rapid.T) {
			_, err := m.context(t).Return(bg, lineage.Assistant(m.often[1]))
			ok(t, err)
		},
		"alternatives": func(t *rapid.T) {
			offered, err := m.context(t).Alternatives(bg, lineage.Overrides{}, lineage.Overrides{})
			require.NoError(t, err)
			say(t, offered[0], m.next("one way"))
			if rapid.Bool().Draw(t, "both") {
				say(t, offered[1], m.next("another way"))
			}
		},
		"edit": func(t *rapid.T) {
			c := m.context(t)
			_, err := c.Edit(bg, position(t, c), lineage.User(m.next("edited")), lineage.EditOptions{Replay: func(*lineage.Entry) bool { return true }})
			ok(t, err)
		},
		"merge": func(t *rapid.T) {
			_, err := m.context(t).Merge(bg, m.context(t))
			ok(t, err)
		},
		"rewind": func(t *rapid.T) {
			c := m.context(t)
			ok(t, c.MoveTo(bg, position(t, c), "rewind"))
		},
		"undo": func(t *rapid.T) { ok(t, m.context(t).Undo(bg)) },
		"summarize": func(t *rapid.T) {
			_, err := m.context(t).Summarize(bg, counter{m}, lineage.SummarizeOptions{})
			ok(t, err)
		},
		"erase": func(t *rapid.T) {
			word := content.Sum([]byte(rapid.SampledFrom(m.often).Draw(t, "erased")))
			ok(t, m.s.Erase(bg, word))
			m.erased = append(m.erased, word)
		},
		"erase large": func(t *rapid.T) {
			for _, e := range must(t)(m.context(t).All(bg)) {
				if e.Size > content.InlineLimit {
					ok(t, m.s.Erase(bg, e.Content))
				}
			}
		},
		"branch": func(t *rapid.T) {
			_, err := m.thread(t).CreateBranch(bg, m.next("branch"), lineage.BranchOptions{Switch: rapid.Bool().Draw(t, "switch")})
			require.NoError(t, err)
		},
		"checkpoint": func(t *rapid.T) {
			_, err := m.thread(t).SetCheckpoint(bg, m.next("point"), lineage.CheckpointOptions{})
			ok(t, err)
		},
		"thread rewind": func(t *rapid.T) {
			th := m.thread(t)
			c, err := th.Active(bg)
			require.NoError(t, err)
			to := position(t, c)
			_, err = th.CreateBranch(bg, "", lineage.BranchOptions{At: to, Empty: to.IsZero(), Switch: true})
			ok(t, err)
		},
		"update": func(t *rapid.T) {
			require.NoError(t, m.thread(t).Update(bg, func(i *lineage.ThreadInfo) error { i.Title = m.next("title"); return nil }))
		},
		"value":          func(t *rapid.T) { m.value(t) },
		"delete context": func(t *rapid.T) { ok(t, m.context(t).Delete(bg)) },
		"delete thread": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") == 0 {
				require.NoError(t, m.thread(t).Delete(bg))
			}
		},
		"collect": func(t *rapid.T) {
			if rapid.IntRange(0, 4).Draw(t, "really") == 0 {
				_, err := m.s.Collect(bg, lineage.CollectOptions{KeepUnused: -1, KeepReflog: -1})
				require.NoError(t, err)
				m.collected = true
			}
		},
	}
}

// value sets a value, or deletes it.
func (m *machine) value(t *rapid.T) {
	v := &structure.Value{At: write.Of(m.s).Now()}
	v.Key = rapid.SampledFrom([]string{"k", "kl", "l"}).Draw(t, "key")
	switch rapid.IntRange(0, 5).Draw(t, "scope") {
	case 0:
		v.Owner = structure.Owner{Scope: structure.StoreScope}
	case 1:
		v.Owner = structure.Owner{Scope: structure.UserScope, Name: rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "user")}
	case 2:
		th, err := write.Of(m.s).Engine().Thread(bg, m.thread(t).ID())
		require.NoError(t, err)
		v.Owner, v.Incarnation = structure.Owner{Scope: structure.ThreadScope, Thread: th.ID}, th.Incarnation
	default:
		c, err := write.Of(m.s).Engine().Context(bg, m.context(t).ID())
		require.NoError(t, err)
		v.Owner, v.Seen = structure.Owner{Scope: structure.ContextScope, Context: c.ID}, c.Tip
	}
	records := []structure.Record{v}
	switch rapid.IntRange(0, 4).Draw(t, "form") {
	case 0:
	case 1:
		b := structure.NewBlock(content.TypeJSON, content.BlockOrigin{}, write.Of(m.s).Now(), []byte(fmt.Sprintf("%q", m.next("value"))))
		v.Content = b.ID
		records = append([]structure.Record{b}, v)
	default:
		v.JSON = []byte(fmt.Sprintf("%q", m.next("value")))
	}
	_, err := write.Of(m.s).Engine().Apply(bg, &structure.Commit{Time: write.Of(m.s).Now(), Records: records}, backend.Options{Durability: backend.Normal})
	require.NoError(t, err)
}

// counter is a summarizer that returns another text each time.
type counter struct{ m *machine }

func (c counter) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: c.m.next("in brief")}, nil
}

func must(t *rapid.T) func(all []*lineage.Entry, err error) []*lineage.Entry {
	return func(all []*lineage.Entry, err error) []*lineage.Entry {
		require.NoError(t, err)
		return all
	}
}

// TestModel copies random stores into an empty store, into a store with an earlier state, and
// against an inventory of an earlier state.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, other, third := newMachine(t), newMachine(t), newMachine(t)
		defer m.close(t)
		defer other.close(t)
		defer third.close(t)

		t.Repeat(m.actions())
		early := writeBundle(t, m.s, bundle.WriteOptions{})
		bring(t, other.s, early)
		requireSame(t, m.s, other.s)
		requireSameBundle(t, early, writeBundle(t, other.s, bundle.WriteOptions{}))
		bringAgain(t, other.s, early)

		deletes := m.actions()
		for _, name := range []string{"delete context", "delete thread", "erase", "erase large", "collect"} {
			delete(deletes, name) // it is deleted in one store only
		}
		m.often = []string{"four", "five"}
		t.Repeat(deletes)
		have, err := bundle.Take(bg, other.s)
		require.NoError(t, err)
		full, part := writeBundle(t, m.s, bundle.WriteOptions{}), writeBundle(t, m.s, bundle.WriteOptions{Have: have})
		requireSameBundle(t, full, writeBundle(t, m.s, bundle.WriteOptions{}))
		if len(early) > 100 {
			bring(t, third.s, early)
		}
		bring(t, third.s, full)
		bring(t, other.s, part)
		has, err := m.s.View().Has(bg, m.erased)
		require.NoError(t, err)
		again := slices.Contains(has, true) // erased content was stored again
		for _, s := range []*lineage.Store{other.s, third.s} {
			require.Equal(t, digests(t, m.s), digests(t, s))
			requireSame(t, m.s, s)
			if !again {
				requireSameBundle(t, full, writeBundle(t, s, bundle.WriteOptions{}))
			}
			bringAgain(t, s, full)
			bringAgain(t, s, part)
			bringAgain(t, s, early)
			requireSound(t, s)
		}
	})
}

// TestModelApart changes two copies of a store, and imports the changes of each into the other.
func TestModelApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, other := newMachine(t), newMachine(t)
		defer m.close(t)
		defer other.close(t)
		t.Repeat(m.actions())
		bring(t, other.s, writeBundle(t, m.s, bundle.WriteOptions{}))
		other.n = 1 << 20
		actions := other.actions()
		t.Repeat(actions)
		t.Repeat(m.actions())
		theirs, ours := writeBundle(t, m.s, bundle.WriteOptions{}), digests(t, other.s)
		have, err := bundle.Take(bg, other.s)
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "leave out what is known") {
			bring(t, other.s, writeBundle(t, m.s, bundle.WriteOptions{Have: have}))
			if other.collected {
				bring(t, other.s, theirs) // with the content that known messages were derived from
			}
		} else {
			bring(t, other.s, theirs)
		}
		bringAgain(t, other.s, theirs)
		requireSound(t, other.s)
		// All content of both is there.
		seen := make(map[structure.Digest]bool)
		for _, d := range digests(t, other.s) {
			seen[d] = true
		}
		for c, d := range digests(t, m.s) {
			if !seen[d] {
				require.True(t, wasHere(t, other.s, c, d), "context %v of the bundle is lost", c)
			}
		}
		for c, d := range ours {
			if !seen[d] {
				require.True(t, wasHere(t, other.s, c, d), "context %v of this store is lost", c)
			}
		}
		bring(t, m.s, writeBundle(t, other.s, bundle.WriteOptions{}))
		requireSound(t, m.s)
	})
}

// wasHere reports whether a context has or had a history with the digest d.
func wasHere(t *rapid.T, s *lineage.Store, id lineage.ContextID, d structure.Digest) bool {
	e := write.Of(s).Engine()
	c, err := e.Context(bg, id)
	require.NoError(t, err)
	ends := []lineage.SpanRef{c.Tip}
	for r, err := range e.Reflog(bg, id) {
		require.NoError(t, err)
		ends = append(ends, r.From, r.To)
	}
	if d.IsZero() {
		return true
	}
	for _, end := range ends {
		if end.IsZero() {
			continue
		}
		for x, err := range s.History(bg, end, lineage.Window{}) {
			require.NoError(t, err)
			if got, err := e.Digest(bg, x.Span); err == nil && got == d {
				return true
			}
		}
	}
	return false
}
