package lineage_test

import (
	"cmp"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage"
)

func (m *machine) createThread(t *rapid.T) {
	m.mayAdd(t, 1)
	if len(m.threads) == maxThreads {
		t.Skip("enough threads")
	}
	h, err := m.s.CreateThread(bg, lineage.ThreadOptions{})
	require.NoError(t, err)
	main, err := h.Active(bg)
	require.NoError(t, err)
	m.add(main.ID(), lineage.ContextID{}, h.ID(), nil)
	m.threads = append(m.threads, &modelThread{
		id: h.ID(), active: main.ID(), branches: []modelBranch{{lineage.MainBranch, main.ID()}},
	})
}

func (m *machine) updateThread(t *rapid.T) {
	thread := m.pickThread(t)
	title := rapid.SampledFrom([]string{"", "a title"}).Draw(t, "title")
	require.NoError(t, m.thread(t, thread).Update(bg, func(i *lineage.ThreadInfo) error { i.Title = title; return nil }))
	thread.title = title
}

func (m *machine) deleteThread(t *rapid.T) {
	thread := m.pickThread(t)
	h := m.thread(t, thread)
	require.NoError(t, h.Delete(bg))
	require.ErrorIs(t, h.Delete(bg), lineage.ErrNotFound)
	m.drop(func(c *modelContext) bool { return c.thread == thread.id })
	m.threads = slices.DeleteFunc(m.threads, func(o *modelThread) bool { return o == thread })
}

// pickName draws the name of a branch, existing or not.
func (m *machine) pickName(t *rapid.T, thread *modelThread) string {
	names := []string{"main", "main-v2", "main-v3", "other"}
	for _, b := range thread.branches {
		names = append(names, b.name)
	}
	return rapid.SampledFrom(names).Draw(t, "name")
}

// branched records a branch that was created from the active one or another context.
func (m *machine) branched(thread *modelThread, name string, id lineage.ContextID, parent *modelContext, history []step) {
	m.add(id, parent.id, thread.id, history)
	thread.branches = append(thread.branches, modelBranch{name, id})
}

func (m *machine) createBranch(t *rapid.T) {
	m.mayAdd(t, 1)
	thread := m.pickThread(t)
	name, o := m.pickName(t, thread), lineage.BranchOptions{}
	from := m.context(thread.active)
	if rapid.Bool().Draw(t, "from another") {
		from = m.pick(t, "from")
		o.From = m.handle(t, from)
	}
	history := from.history
	switch rapid.SampledFrom([]string{"tip", "span", "empty"}).Draw(t, "at") {
	case "span":
		if o.At = m.pickRef(t); !o.At.IsZero() {
			history = m.spans[o.At]
		}
	case "empty":
		o.Empty, history = true, nil
	}
	o.Switch = rapid.Bool().Draw(t, "switch")
	h, err := m.thread(t, thread).CreateBranch(bg, name, o)
	if thread.branch(name) != nil {
		require.ErrorIs(t, err, lineage.ErrExists)
		require.ErrorContains(t, err, name)
		return
	}
	require.NoError(t, err)
	m.branched(thread, name, h.ID(), from, history)
	if o.Switch {
		thread.active = h.ID()
	}
}

func (m *machine) rewindThread(t *rapid.T) {
	m.mayAdd(t, 1)
	thread, to := m.pickThread(t), m.pickRef(t)
	b, err := rewind(m.thread(t, thread), to)
	require.NoError(t, err)
	m.switched(t, thread, b, m.spans[to])
}

// switched records a branch that was created with an automatic name and made active.
func (m *machine) switched(t *rapid.T, thread *modelThread, b lineage.BranchInfo, history []step) {
	require.Equal(t, thread.automaticName(), b.Name)
	require.True(t, b.Active)
	m.branched(thread, b.Name, b.Context, m.context(thread.active), history)
	thread.active = b.Context
}

func (m *machine) aside(t *rapid.T) {
	m.mayAdd(t, 1)
	thread := m.pickThread(t)
	active := m.context(thread.active)
	b, err := aside(m.thread(t, thread))
	require.NoError(t, err)
	require.Equal(t, thread.automaticName(), b.Name)
	require.False(t, b.Active)
	m.branched(thread, b.Name, b.Context, active, active.history)
}

func (m *machine) switchBranch(t *rapid.T) {
	thread := m.pickThread(t)
	name := m.pickName(t, thread)
	err := m.thread(t, thread).Switch(bg, name)
	b := thread.branch(name)
	if b == nil {
		require.ErrorIs(t, err, lineage.ErrNotFound)
		require.ErrorContains(t, err, name)
		return
	}
	require.NoError(t, err)
	thread.active = b.context
}

func (m *machine) nameBranch(t *rapid.T) {
	thread, c := m.pickThread(t), m.pick(t, "context")
	name := m.pickName(t, thread)
	err := m.thread(t, thread).NameBranch(bg, name, m.handle(t, c))
	switch {
	case c.thread != thread.id:
		require.ErrorIs(t, err, lineage.ErrInvalid)
		require.ErrorContains(t, err, c.id.String())
	case thread.branch(name) != nil && thread.branch(name).context != c.id:
		require.ErrorIs(t, err, lineage.ErrExists)
		require.ErrorContains(t, err, name)
	default:
		require.NoError(t, err)
		if i := slices.IndexFunc(thread.branches, func(b modelBranch) bool { return b.context == c.id }); i >= 0 {
			thread.branches[i].name = name
		} else {
			thread.branches = append(thread.branches, modelBranch{name, c.id})
		}
	}
}

func (m *machine) renameBranch(t *rapid.T) {
	thread := m.pickThread(t)
	from, to := m.pickName(t, thread), m.pickName(t, thread)
	err := renameBranch(m.thread(t, thread), from, to)
	b := thread.branch(from)
	switch {
	case b == nil:
		require.ErrorIs(t, err, lineage.ErrNotFound)
		require.ErrorContains(t, err, from)
	case from != to && thread.branch(to) != nil:
		require.ErrorIs(t, err, lineage.ErrExists)
		require.ErrorContains(t, err, to)
	default:
		require.NoError(t, err)
		b.name = to
	}
}

func (m *machine) deleteBranch(t *rapid.T) {
	thread := m.pickThread(t)
	name := m.pickName(t, thread)
	err := m.thread(t, thread).DeleteBranch(bg, name)
	b := thread.branch(name)
	switch {
	case name == lineage.MainBranch:
		require.ErrorIs(t, err, lineage.ErrProtected)
		return
	case b == nil:
		require.ErrorIs(t, err, lineage.ErrNotFound)
		return
	case len(thread.branches) == 1:
		require.ErrorIs(t, err, lineage.ErrProtected)
		return
	}
	require.NoError(t, err)
	gone := b.context
	thread.branches = slices.DeleteFunc(thread.branches, func(o modelBranch) bool { return o.context == gone })
	m.drop(func(c *modelContext) bool { return c.id == gone })
	if thread.active == gone {
		thread.active = slices.MinFunc(thread.branches, func(a, b modelBranch) int { return cmp.Compare(a.name, b.name) }).context
		if main := thread.branch(lineage.MainBranch); main != nil {
			thread.active = main.context
		}
	}
}

func (m *machine) checkpoint(t *rapid.T) {
	thread := m.pickThread(t)
	name := rapid.SampledFrom([]string{"before", "after"}).Draw(t, "name")
	at := m.context(thread.active).tip()
	c, err := m.thread(t, thread).SetCheckpoint(bg, name, lineage.CheckpointOptions{})
	if at.IsZero() {
		require.ErrorIs(t, err, lineage.ErrInvalid)
		return
	}
	require.NoError(t, err)
	if i := thread.checkpoint(name); i >= 0 {
		require.Equal(t, thread.checkpoints[i].id, c.ID)
		thread.checkpoints = slices.Delete(thread.checkpoints, i, i+1)
	}
	thread.checkpoints = slices.Insert(thread.checkpoints, 0, modelCheckpoint{name, c.ID, at})
}

func (t *modelThread) checkpoint(name string) int {
	return slices.IndexFunc(t.checkpoints, func(c modelCheckpoint) bool { return c.name == name })
}

func (m *machine) restore(t *rapid.T) {
	m.mayAdd(t, 1)
	thread := m.pickThread(t)
	at, err := m.thread(t, thread).Checkpoint(bg, "before")
	i := thread.checkpoint("before")
	if i < 0 {
		require.ErrorIs(t, err, lineage.ErrNotFound)
		require.ErrorContains(t, err, "before")
		return
	}
	require.NoError(t, err)
	b, err := rewind(m.thread(t, thread), at.Span)
	require.NoError(t, err)
	m.switched(t, thread, b, m.spans[thread.checkpoints[i].span])
}

func (m *machine) deleteCheckpoint(t *rapid.T) {
	thread := m.pickThread(t)
	err := m.thread(t, thread).DeleteCheckpoint(bg, "before")
	i := thread.checkpoint("before")
	if i < 0 {
		require.ErrorIs(t, err, lineage.ErrNotFound)
		return
	}
	require.NoError(t, err)
	thread.checkpoints = slices.Delete(thread.checkpoints, i, i+1)
}
