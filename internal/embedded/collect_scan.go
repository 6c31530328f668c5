package embedded

import (
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// scan reads the journal up to the state. It marks the content of live spans, and notes
// all deletions.
func (m *marker) scan(progress func(int64) error) error {
	for f, err := range m.view.commits(m.live.until) {
		if err != nil {
			return err
		}
		if err := progress(f.size); err != nil {
			return err
		}
		for _, r := range f.Records {
			if err := m.scanRecord(f.Commit, r); err != nil {
				return err
			}
		}
	}
	if err := m.unused(); err != nil {
		return err
	}
	m.lives, m.members = nil, nil
	m.scanned = true
	for id := range m.trees {
		if m.live.block(id) {
			if err := m.tree(id); err != nil {
				return err
			}
		}
	}
	return m.findStored()
}

func (m *marker) scanRecord(c *structure.Commit, r structure.Record) error {
	switch r := r.(type) {
	case *structure.Block:
		if r.Tree.Size > 0 {
			m.trees[r.ID] = r.Tree
		}
		if m.isYoung(c) {
			m.young.add(hash(r.ID[:]))
		}
	case *structure.Chunk:
		if m.isYoung(c) {
			m.youngChunks.add(hash(r.Key[:]))
		}
	case *structure.Context:
		m.stated(c.Number, r.ID, r.Thread, false)
	case *structure.Remnant:
		m.stated(c.Number, r.ID, structure.ThreadID{}, true)
	case *structure.Run:
		if !has(m.live.runs, r.ID) {
			m.live.deadRuns[r.ID] = r.Parent
		}
	case *structure.Span:
		return m.scanSpan(r)
	case *structure.Summary:
		m.noteDeadUse(r.Content)
	case *structure.Value:
		m.noteDeadUse(r.Content)
	case *structure.Reflog:
		// An undo must not skip a missing entry, so the entries before it are removed
		// too.
		if has(m.live.contexts, r.Context) && !(m.live.span(r.From) && m.live.span(r.To)) {
			m.live.cutReflog[r.Context] = c.Number
		}
	case *structure.Deletion:
		m.deletion(c, r)
	}
	return nil
}

func (m *marker) scanSpan(s *structure.Span) error {
	run, ok := m.live.runs[s.Ref.Run]
	if ok && s.Ref.Seq > run.end {
		run.end = s.Ref.Seq
		m.live.runs[s.Ref.Run] = run
	}
	lives := ok && s.Ref.Seq <= run.live
	var named [3]*content.ID
	for i := range s.Usages {
		for _, id := range s.Usages[i].Named(named[:0]) {
			if !lives {
				m.noteDeadUse(*id)
			} else if err := m.content(*id); err != nil {
				return err
			}
		}
	}
	return nil
}

// noteDeadUse records that something that is dead, or may be dead, uses content.
func (m *marker) noteDeadUse(id content.ID) {
	if h := hash(id[:]); m.young.has(h) {
		m.usedByDead.add(h)
	}
}

func (m *marker) deletion(c *structure.Commit, d *structure.Deletion) {
	switch d.Subject {
	case structure.KindThread:
		m.endedAll(c.Number, d.Thread)
		if has(m.live.threads, d.Thread) {
			m.live.deletedThreads[d.Thread] = c.Number
		}
	case structure.KindContext:
		m.ended(c.Number, d.Context)
	case structure.KindBlock:
		m.live.stored[d.Content] = 0 // see findStored
	}
}

func (m *marker) isYoung(c *structure.Commit) bool {
	return m.opt.KeepUnused > 0 && c.Time.After(m.before(m.opt.KeepUnused))
}

// unused marks recently stored content that nothing used yet: a caller may be about to
// use it. This includes chunks without a block, but not the chunks of blocks that are
// erased, or that were used and are now dead.
func (m *marker) unused() error {
	var used hashSet
	for id, root := range m.trees {
		h := hash(id[:])
		if m.youngChunks.n == 0 || !has(m.live.erased, id) && (!m.usedByDead.has(h) || m.live.contents.has(h)) {
			continue
		}
		err := content.Walk(m.ctx, root, m.view.Chunks, func(k content.Key, _ bool) error {
			used.add(hash(k[:]))
			return nil
		})
		if err != nil && !errors.Is(err, backend.ErrNotFound) {
			return err
		}
	}
	m.live.contents.addAll(&m.young, &m.usedByDead)
	m.live.contents.addAll(&m.youngChunks, &used)
	m.young, m.youngChunks, m.usedByDead = hashSet{}, hashSet{}, hashSet{}
	return nil
}

// findStored finds the commits that have the last records of the blocks that were ever
// erased.
func (m *marker) findStored() error {
	r := m.view.Commits.NewReader()
	for id := range m.live.stored {
		value, ok, err := m.view.Index.Get(keys.Block(id))
		if err != nil {
			return err
		}
		if !ok {
			delete(m.live.stored, id)
			continue
		}
		p, err := keys.ReadPlace(value)
		if err != nil {
			return err
		}
		frame, err := r.Frame(p.Frame)
		if err != nil {
			return err
		}
		m.live.stored[id] = frame.Number
	}
	return nil
}
