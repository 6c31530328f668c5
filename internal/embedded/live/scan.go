package live

import (
	"errors"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Scan reads the journal up to the state. It marks the content of live spans, and records all deletions.
func (m *Marker) Scan(progress func(int64) error) error {
	for f, err := range m.view.History(1, m.Live.Until) {
		if err != nil {
			return err
		}
		if err := progress(f.Size); err != nil {
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
		if m.Live.Block(id) {
			if err := m.tree(id); err != nil {
				return err
			}
		}
	}
	return m.findStored()
}

func (m *Marker) scanRecord(c *structure.Commit, r structure.Record) error {
	switch r := r.(type) {
	case *structure.Block:
		if r.Tree.Size > 0 {
			m.trees[r.ID] = r.Tree
		}
		if m.isYoung(c) {
			m.young.add(Hash(r.ID[:]))
		}
	case *structure.Chunk:
		if m.isYoung(c) {
			m.youngChunks.add(Hash(r.Key[:]))
		}
	case *structure.Context:
		m.stated(c.Number, r.ID, r.Thread, false)
	case *structure.Remnant:
		m.stated(c.Number, r.ID, structure.ThreadID{}, true)
	case *structure.Run:
		if !has(m.Live.runs, r.ID) {
			m.Live.deadRuns[r.ID] = r.Parent
		}
	case *structure.Span:
		return m.scanSpan(r)
	case *structure.Summary:
		m.noteDeadUse(r.Content)
	case *structure.Value:
		m.noteDeadUse(r.Content)
	case *structure.Reflog:
		// An undo must not skip a missing reflog entry, so the entries before a removed one are removed too.
		if has(m.Live.contexts, r.Context) && !(m.Live.Span(r.From) && m.Live.Span(r.To)) {
			m.Live.cutReflog[r.Context] = c.Number
		}
	case *structure.Deletion:
		m.deletion(c, r)
	}
	return nil
}

func (m *Marker) scanSpan(s *structure.Span) error {
	run, ok := m.Live.runs[s.Ref.Run]
	if ok && s.Ref.Seq > run.End {
		run.End = s.Ref.Seq
		m.Live.runs[s.Ref.Run] = run
	}
	lives := ok && s.Ref.Seq <= run.Live
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
func (m *Marker) noteDeadUse(id content.ID) {
	if h := Hash(id[:]); m.young.has(h) {
		m.usedByDead.add(h)
	}
}

func (m *Marker) deletion(c *structure.Commit, d *structure.Deletion) {
	switch d.Subject {
	case structure.KindThread:
		m.endedAll(c.Number, d.Thread)
		if has(m.Live.threads, d.Thread) {
			m.Live.deletedThreads[d.Thread] = c.Number
		}
	case structure.KindContext:
		m.ended(c.Number, d.Context)
	case structure.KindBlock:
		m.Live.stored[d.Content] = 0 // see findStored
	}
}

func (m *Marker) isYoung(c *structure.Commit) bool {
	return m.opt.KeepUnused > 0 && c.Time.After(m.before(m.opt.KeepUnused))
}

// unused marks recently stored content that nothing has used yet, because a caller may be about to use it. This
// includes chunks without a block. It does not include chunks of blocks that are erased, or that were used and are
// now dead.
func (m *Marker) unused() error {
	var used hashSet
	for id, root := range m.trees {
		h := Hash(id[:])
		if m.youngChunks.n == 0 || !has(m.Live.erased, id) && (!m.usedByDead.has(h) || m.Live.contents.has(h)) {
			continue
		}
		err := content.Walk(m.ctx, root, m.view.Chunks, func(k content.Key, _ bool) error {
			used.add(Hash(k[:]))
			return nil
		})
		if err != nil && !errors.Is(err, backend.ErrNotFound) {
			return err
		}
	}
	m.Live.contents.addAll(&m.young, &m.usedByDead)
	m.Live.contents.addAll(&m.youngChunks, &used)
	m.young, m.youngChunks, m.usedByDead = hashSet{}, hashSet{}, hashSet{}
	return nil
}

// findStored finds the commits that have the last records of the blocks that were ever
// erased.
func (m *Marker) findStored() error {
	r := m.view.Commits.NewReader()
	for id := range m.Live.stored {
		value, ok, err := m.view.Index.Get(keys.Block(id))
		if err != nil {
			return err
		}
		if !ok {
			delete(m.Live.stored, id)
			continue
		}
		p, err := keys.ReadLocation(value)
		if err != nil {
			return err
		}
		frame, err := r.Frame(p.Frame)
		if err != nil {
			return err
		}
		m.Live.stored[id] = frame.Number
	}
	return nil
}
