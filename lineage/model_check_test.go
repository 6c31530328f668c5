package lineage_test

import (
	"io"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// check compares the whole store with the model.
func (m *machine) check(t *rapid.T) {
	wordings := make(map[structure.Digest]string)
	for _, c := range m.contexts {
		h := m.handle(t, c)
		m.checkInfo(t, h, c)
		m.checkWindow(t, h, c, lineage.Window{})
		m.checkDigest(t, h, c, wordings)
	}
	for _, thread := range m.threads {
		m.checkThread(t, thread)
	}
	if len(m.contexts) == 0 {
		return
	}
	c := m.pick(t, "windowed")
	place := rapid.Uint64Range(0, uint64(len(c.history)+2))
	m.checkWindow(t, m.handle(t, c), c, lineage.Window{
		From: place.Draw(t, "from"), To: place.Draw(t, "to"), Last: place.Draw(t, "last"),
	})
	m.checkPair(t, m.pick(t, "a"), m.pick(t, "b"))
}

func (m *machine) checkInfo(t *rapid.T, h *lineage.Context, c *modelContext) {
	info, err := h.Info(bg)
	require.NoError(t, err)
	require.Equal(t, c.tip(), info.Tip)
	require.Equal(t, c.parent, info.Parent)
	require.Equal(t, c.thread, info.Thread)
	length, err := h.Len(bg)
	require.NoError(t, err)
	require.EqualValues(t, len(c.history), length)
	moves, err := gather(h.Reflog(bg))
	require.NoError(t, err)
	require.Len(t, moves, len(c.moves))
	for i, one := range moves {
		require.Equal(t, c.moves[i], modelMove{one.From, one.To, one.Reason})
	}
}

func (m *machine) checkWindow(t *rapid.T, h *lineage.Context, c *modelContext, w lineage.Window) {
	entries, err := gather(h.Entries(bg, w))
	require.NoError(t, err)
	want := window(c.history, w)
	i := 0
	for _, s := range want {
		position := 1 + slices.IndexFunc(c.history, func(o step) bool { return o.ref == s.ref })
		for index, u := range s.says {
			require.Less(t, i, len(entries), "the history ends early")
			e := entries[i]
			require.Equal(t, s.ref, e.Span)
			require.Equal(t, index, e.Index)
			require.EqualValues(t, position, e.Position)
			m.checkEntry(t, u, e)
			i++
		}
	}
	require.Len(t, entries, i)
}

func (m *machine) checkEntry(t *rapid.T, u modelUsage, e *lineage.Entry) {
	require.Equal(t, u.kind, e.Kind)
	require.Equal(t, []string{u.role, u.name, u.document, u.file}, []string{e.Role, e.Name, e.Document, e.Filename})
	require.Equal(t, u.revision, e.Revision)
	require.Equal(t, m.erased[u.text], e.Erased)
	switch {
	case e.Erased:
		require.Nil(t, e.Body)
		_, err := m.s.Body(bg, e.Content)
		require.ErrorIs(t, err, lineage.ErrErased)
	case u.text == largeText:
		require.Nil(t, e.Body)
		require.EqualValues(t, len(u.text), e.Size)
		r, err := m.s.Body(bg, e.Content)
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		require.True(t, string(body) == u.text)
	default:
		require.Equal(t, u.text, e.Excerpt())
		require.EqualValues(t, len(u.text), e.Size)
	}
}

// checkDigest requires that digests are equal if and only if histories are.
func (m *machine) checkDigest(t *rapid.T, h *lineage.Context, c *modelContext, wordings map[structure.Digest]string) {
	digest, err := h.Digest(bg)
	require.NoError(t, err)
	wording := ""
	for _, s := range c.history {
		wording += wordingOf(s) + "\n"
	}
	if other, seen := wordings[digest]; seen {
		require.Equal(t, other, wording, "different histories have one digest")
	}
	for other, otherWording := range wordings {
		if other != digest {
			require.NotEqual(t, otherWording, wording, "equal histories have different digests")
		}
	}
	wordings[digest] = wording
}

func (m *machine) checkPair(t *rapid.T, a, b *modelContext) {
	ha, hb := m.handle(t, a), m.handle(t, b)
	want := commonPrefix(a.history, b.history)
	common, err := m.s.CommonPrefix(bg, a.tip(), b.tip())
	require.NoError(t, err)
	require.EqualValues(t, want, common)
	for _, side := range []struct {
		handle  *lineage.Context
		history []step
	}{{ha, a.history}, {hb, b.history}} {
		var only []*lineage.Entry
		for e, err := range side.handle.Entries(bg, lineage.Window{From: common + 1}) {
			require.NoError(t, err)
			only = append(only, e)
		}
		i := 0
		for _, s := range side.history[want:] {
			for _, u := range s.says {
				require.Less(t, i, len(only))
				require.Equal(t, s.ref, only[i].Span)
				m.checkEntry(t, u, only[i])
				i++
			}
		}
		require.Len(t, only, i)
	}
}

func (m *machine) checkThread(t *rapid.T, want *modelThread) {
	h := m.thread(t, want)
	info, err := h.Info(bg)
	require.NoError(t, err)
	require.Equal(t, want.title, info.Title)
	require.Equal(t, want.active, info.Active)
	branches, err := h.Branches(bg)
	require.NoError(t, err)
	require.Len(t, branches, len(want.branches))
	active := 0
	for i, b := range branches {
		c := m.context(want.branches[i].context)
		require.Equal(t, want.branches[i], modelBranch{b.Name, b.Context})
		require.Equal(t, c.tip(), b.Head)
		require.EqualValues(t, len(c.history), b.Length)
		if b.Active {
			active++
			require.Equal(t, want.active, b.Context)
		}
	}
	require.Equal(t, 1, active, "active branches")
	checkpoints, err := h.Checkpoints(bg)
	require.NoError(t, err)
	require.Len(t, checkpoints, len(want.checkpoints))
	for i, c := range checkpoints {
		require.Equal(t, want.checkpoints[i], modelCheckpoint{c.Name, c.ID, c.Span})
	}
	m.checkMembers(t, h)
}

func (m *machine) checkMembers(t *rapid.T, h *lineage.Thread) {
	var want, are []lineage.ContextID
	for _, c := range m.contexts {
		if c.thread == h.ID() {
			want = append(want, c.id)
		}
	}
	for c, err := range h.Contexts(bg) {
		require.NoError(t, err)
		are = append(are, c.ID())
	}
	require.Equal(t, want, are)
}

// checkCopies copies every history to another store and compares digests.
func (m *machine) checkCopies(t *rapid.T, other *lineage.Store) {
	for _, c := range m.contexts {
		h, err := other.NewContext(bg, lineage.ContextOptions{})
		require.NoError(t, err)
		for _, s := range c.history {
			_, err := h.Extend(bg, lineage.Together(itemsOf(s.says)...))
			require.NoError(t, err)
		}
		there, err := h.Digest(bg)
		require.NoError(t, err)
		here, err := m.handle(t, c).Digest(bg)
		require.NoError(t, err)
		require.Equal(t, here, there)
	}
}
