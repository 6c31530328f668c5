package lineage_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

func (m *machine) newContext(t *rapid.T) {
	m.mayAdd(t, 1)
	h, err := m.s.NewContext(bg, lineage.ContextOptions{})
	require.NoError(t, err)
	m.add(h.ID(), lineage.ContextID{}, lineage.ThreadID{}, nil)
}

func (m *machine) extend(t *rapid.T) {
	c, says := m.pick(t, "context"), m.newSays(t)
	refs, err := m.handle(t, c).Extend(bg, itemsOf(says)...)
	require.NoError(t, err)
	require.Len(t, refs, len(says))
	m.noteStored(says...)
	m.grow(c, refs, oneEach(says))
}

func (m *machine) extendFrom(t *rapid.T) {
	c, says, at := m.pick(t, "context"), m.newSays(t), m.pickRef(t)
	if rapid.Bool().Draw(t, "right") {
		at = c.tip()
	}
	refs, err := m.handle(t, c).ExtendFrom(bg, at, itemsOf(says)...)
	if at != c.tip() {
		require.ErrorIs(t, err, lineage.ErrTipMoved)
		return
	}
	require.NoError(t, err)
	m.noteStored(says...)
	m.grow(c, refs, oneEach(says))
}

func (m *machine) extendTogether(t *rapid.T) {
	c, says := m.pick(t, "context"), m.newSays(t)
	refs, err := m.handle(t, c).Extend(bg, lineage.Together(itemsOf(says)...))
	require.NoError(t, err)
	m.noteStored(says...)
	m.grow(c, refs, [][]modelUsage{says})
}

func (m *machine) fork(t *rapid.T) {
	m.mayAdd(t, 1)
	c, at, thread := m.pick(t, "context"), lineage.SpanRef{}, lineage.ThreadID{}
	if rapid.Bool().Draw(t, "elsewhere") {
		at = m.pickRef(t)
	}
	if len(m.threads) > 0 && rapid.Bool().Draw(t, "into a thread") {
		thread = m.pickThread(t).id
	}
	h, err := m.handle(t, c).Fork(bg, lineage.ForkOptions{At: at, Thread: thread})
	require.NoError(t, err)
	history := c.history
	if !at.IsZero() {
		history = m.spans[at]
	}
	if thread.IsZero() {
		thread = c.thread
	}
	m.add(h.ID(), c.id, thread, history)
}

func (m *machine) forkEmpty(t *rapid.T) {
	m.mayAdd(t, 1)
	c := m.pick(t, "context")
	h, err := m.handle(t, c).Fork(bg, lineage.ForkOptions{Empty: true})
	require.NoError(t, err)
	m.add(h.ID(), c.id, c.thread, nil)
}

// filter draws a filter and returns what it keeps of a history.
func (m *machine) filter(t *rapid.T, history []step) (lineage.Filter, [][]modelUsage) {
	var f lineage.Filter
	keeps := func(modelUsage) bool { return true }
	switch rapid.SampledFrom([]string{"all", "role", "range", "last", "predicate"}).Draw(t, "filter") {
	case "role":
		f.Roles = []string{"user", "tool"}
		keeps = func(u modelUsage) bool { return u.role == "user" || u.role == "tool" }
	case "range":
		f.Window.From = rapid.Uint64Range(0, uint64(len(history)+1)).Draw(t, "from")
		f.Window.To = rapid.Uint64Range(0, uint64(len(history)+1)).Draw(t, "to")
	case "last":
		f.Window.Last = rapid.Uint64Range(1, 4).Draw(t, "last")
	case "predicate":
		f.Keep = func(e *lineage.Entry) bool { return e.Content[0]%2 == 0 }
		keeps = func(u modelUsage) bool { return content.Sum([]byte(u.text))[0]%2 == 0 }
	}
	return f, m.model.choose(window(history, f.Window), keeps)
}

func (m *machine) subset(t *rapid.T) {
	m.mayAdd(t, 1)
	c, at := m.pick(t, "context"), lineage.SpanRef{}
	history := c.history
	if rapid.Bool().Draw(t, "elsewhere") {
		if at = m.pickRef(t); !at.IsZero() {
			history = m.spans[at]
		}
	}
	f, says := m.filter(t, history)
	h, err := m.handle(t, c).Fork(bg, lineage.ForkOptions{At: at, Sees: &f})
	require.NoError(t, err)
	m.adopt(t, h, c, nil, says)
}

func (m *machine) giveBack(t *rapid.T) {
	c := m.pick(t, "context")
	from := fmt.Sprint(c.id, c.tip())
	if m.returned[from] {
		t.Skip("it has returned a result from there")
	}
	says := []modelUsage{m.newSaid(t)}
	ref, err := m.handle(t, c).Return(bg, itemsOf(says)[0])
	parent := m.context(c.parent)
	switch {
	case c.parent.IsZero():
		require.ErrorIs(t, err, lineage.ErrInvalid)
	case parent == nil:
		require.ErrorIs(t, err, lineage.ErrNotFound)
	default:
		require.NoError(t, err)
		m.noteStored(says...)
		m.grow(parent, []lineage.SpanRef{ref}, [][]modelUsage{says})
		m.returned[from] = true
	}
}

func (m *machine) send(t *rapid.T) {
	from, to := m.pick(t, "from"), m.pick(t, "to")
	entries, err := m.handle(t, from).All(bg)
	require.NoError(t, err)
	if len(entries) == 0 {
		t.Skip("nothing to send")
	}
	i := rapid.IntRange(0, len(entries)-1).Draw(t, "entry")
	if entries[i].Kind == lineage.Document {
		t.Skip("its number may be taken there")
	}
	var says []modelUsage
	for _, s := range from.history {
		says = append(says, s.says...)
	}
	m.places++
	u := says[i]
	u.place, u.merged = m.places, false
	ref, err := m.handle(t, from).Send(bg, m.handle(t, to), entries[i].Item())
	require.NoError(t, err)
	m.grow(to, []lineage.SpanRef{ref}, [][]modelUsage{{u}})
}

func (m *machine) say(t *rapid.T) {
	from, to := m.pick(t, "from"), m.pick(t, "to")
	if from == to {
		t.Skip("to itself")
	}
	u := m.newSaid(t)
	m.places++
	heard := u
	if heard.place = m.places; heard.kind == lineage.Message {
		heard.role, heard.name = "user", "user"
	}
	here, there, err := addAndSend(m.s, m.handle(t, from), m.handle(t, to), itemsOf([]modelUsage{u})[0], lineage.Item{Role: "user"})
	require.NoError(t, err)
	m.noteStored(u)
	m.grow(from, []lineage.SpanRef{here}, [][]modelUsage{{u}})
	m.grow(to, []lineage.SpanRef{there}, [][]modelUsage{{heard}})
}

// alternatives creates alternatives and extends them concurrently.
func (m *machine) alternatives(t *rapid.T) {
	n := rapid.IntRange(2, 3).Draw(t, "alternatives")
	m.mayAdd(t, n)
	c := m.pick(t, "context")
	offered, err := m.handle(t, c).Alternatives(bg, make([]lineage.Overrides, n)...)
	require.NoError(t, err)
	require.Len(t, offered, n)
	says, refs, errs := make([][]modelUsage, n), make([][]lineage.SpanRef, n), make([]error, n)
	for i := range n {
		says[i] = m.newSays(t)
	}
	var wg sync.WaitGroup
	for i := range n - 1 { // the last stays empty
		wg.Go(func() { refs[i], errs[i] = offered[i].Extend(bg, itemsOf(says[i])...) })
	}
	wg.Wait()
	var first []lineage.SpanRef
	for i, h := range offered {
		require.NoError(t, errs[i])
		alternative := m.add(h.ID(), c.id, c.thread, c.history)
		alternative.offered, alternative.base = true, c.tip()
		if len(refs[i]) > 0 {
			m.noteStored(says[i]...)
			m.grow(alternative, refs[i], oneEach(says[i]))
			first = append(first, refs[i][0])
		}
	}
	info, err := offered[0].Info(bg)
	require.NoError(t, err)
	require.Equal(t, c.tip(), info.Base)
	var filled []lineage.SpanRef
	for ref, err := range m.s.View().Alternatives(bg, info.Set) {
		require.NoError(t, err)
		filled = append(filled, ref)
	}
	require.ElementsMatch(t, first, filled)
}

func (m *machine) chooseOne(t *rapid.T) {
	c, alternative := m.pick(t, "context"), m.pick(t, "alternative")
	err := m.handle(t, c).Choose(bg, m.handle(t, alternative))
	switch {
	case alternative.parent != c.id || !alternative.offered || alternative.tip() == alternative.base:
		require.ErrorIs(t, err, lineage.ErrInvalid)
	case c.tip() == alternative.base:
		require.NoError(t, err)
		c.history = slices.Clone(alternative.history)
	default:
		require.NoError(t, err)
		c.move(alternative.history, "choose")
	}
}

func (m *machine) edit(t *rapid.T) {
	m.mayAdd(t, 1)
	c := m.pick(t, "context")
	if len(c.history) == 0 {
		t.Skip("nothing to edit")
	}
	at := rapid.IntRange(0, len(c.history)-1).Draw(t, "edited")
	index := rapid.IntRange(0, len(c.history[at].says)-1).Draw(t, "index")
	word := word(t)
	edited := make([]modelUsage, len(c.history[at].says))
	for i, u := range c.history[at].says {
		edited[i] = m.asNew(u)
	}
	u := &edited[index]
	m.places++
	if u.text, u.place, u.merged = word, m.places, false; u.kind == lineage.Document {
		u.revision++
	}
	says, o := [][]modelUsage{edited}, lineage.EditOptions{Index: index}
	switch rapid.SampledFrom([]string{"none", "all", "users"}).Draw(t, "replay") {
	case "all":
		o.Replay = func(*lineage.Entry) bool { return true }
		says = append(says, m.model.choose(c.history[at+1:], func(modelUsage) bool { return true })...)
	case "users":
		o.Replay = func(e *lineage.Entry) bool { return e.Role == "user" }
		says = append(says, m.model.choose(c.history[at+1:], func(u modelUsage) bool { return u.role == "user" })...)
	}
	h, err := m.handle(t, c).Edit(bg, c.history[at].ref, lineage.Item{Body: []byte(word)}, o)
	require.NoError(t, err)
	m.noteStored(edited[index])
	m.adopt(t, h, c, c.history[:at], says)
}

func (m *machine) merge(t *rapid.T) {
	target, source := m.pick(t, "target"), m.pick(t, "source")
	result, err := m.handle(t, target).Merge(bg, m.handle(t, source))
	if target == source {
		require.ErrorIs(t, err, lineage.ErrInvalid)
		return
	}
	require.NoError(t, err)
	says := unmerged(target.history, source.history)
	require.Len(t, result, len(says))
	m.grow(target, result, says)
	result, err = m.handle(t, target).Merge(bg, m.handle(t, source))
	require.NoError(t, err)
	require.Empty(t, result, "what was merged is merged again")
}

func (m *machine) replace(t *rapid.T) {
	target, source := m.pick(t, "target"), m.pick(t, "source")
	if target == source {
		t.Skip("into itself")
	}
	require.NoError(t, m.handle(t, target).MoveTo(bg, tipOf(source.history), "replace"))
	target.move(source.history, "replace")
}

func (m *machine) moveTo(t *rapid.T) {
	c, to := m.pick(t, "context"), m.pickRef(t)
	require.NoError(t, m.handle(t, c).MoveTo(bg, to, "because"))
	c.move(m.spans[to], "because")
}

func (m *machine) back(t *rapid.T) {
	c := m.pick(t, "context")
	n := rapid.IntRange(0, min(4, len(c.history))).Draw(t, "n")
	back(t, m.handle(t, c), uint64(n))
	c.move(c.history[:len(c.history)-n], "rewind")
}

func (m *machine) undo(t *rapid.T) {
	c := m.pick(t, "context")
	err := m.handle(t, c).Undo(bg)
	if len(c.moves) == 0 {
		require.ErrorIs(t, err, lineage.ErrNotFound)
		return
	}
	require.NoError(t, err)
	c.move(m.spans[c.moves[len(c.moves)-1].from], "undo")
}

func (m *machine) deleteContext(t *rapid.T) {
	c := m.pick(t, "context")
	err := m.handle(t, c).Delete(bg)
	if m.isBranch(c.id) {
		require.ErrorIs(t, err, lineage.ErrConflict)
		return
	}
	require.NoError(t, err)
	_, err = m.s.Context(bg, c.id)
	require.ErrorIs(t, err, lineage.ErrNotFound)
	m.drop(func(o *modelContext) bool { return o == c })
}

func (m *machine) put(t *rapid.T) {
	word := word(t)
	b, _, err := m.s.Put(bg, strings.NewReader(word), lineage.BlockOptions{})
	require.NoError(t, err)
	require.Equal(t, content.Sum([]byte(word)), b.ID)
	m.noteStored(modelUsage{text: word})
}

func (m *machine) erase(t *rapid.T) {
	if len(m.stored) == 0 {
		t.Skip("nothing stored")
	}
	word := rapid.SampledFrom(m.stored).Draw(t, "word")
	err := m.s.Erase(bg, content.Sum([]byte(word)))
	require.NoError(t, err)
	m.erased[word] = true
}
