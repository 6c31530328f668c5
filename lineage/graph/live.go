package graph

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/derived"
)

const (
	// maxKept limits the lines and names of the cached graphs.
	maxKept = 200_000
	// maxBehind limits the commits that are read to update the graphs. If there are more, graphs are read again on
	// request.
	maxBehind = 1000
)

// Live caches the graphs that were requested last, and updates them from the feed of the store. An append moves one
// name and the end of one line. It is safe for concurrent use.
type Live struct {
	store *lineage.Store
	limit int

	mu   sync.RWMutex
	mark derived.Mark
	// graphs are the cached graphs. contexts maps their contexts to threads. kept is the number of their lines and
	// names.
	graphs   map[lineage.ThreadID]*cachedGraph
	contexts map[lineage.ContextID]lineage.ThreadID
	kept     int
	clock    uint64
	// reads counts the graphs that were read from the store.
	reads int
}

// cachedGraph is a cached graph.
type cachedGraph struct {
	*Graph
	active lineage.ContextID
	tips   map[lineage.ContextID]lineage.SpanRef
	size   int
	at     uint64 // the commit as of which it is
	used   uint64
}

// NewLive returns a cache for the graphs of a store. It reads nothing.
func NewLive(store *lineage.Store) *Live {
	l := &Live{store: store, limit: maxKept}
	l.forget()
	return l
}

// forget drops all graphs.
func (l *Live) forget() {
	l.graphs, l.contexts, l.kept = make(map[lineage.ThreadID]*cachedGraph), make(map[lineage.ContextID]lineage.ThreadID), 0
}

// Read calls a function with the current graph of a thread. The function must not change the graph or use it later.
func (l *Live) Read(ctx context.Context, id lineage.ThreadID, do func(*Graph) error) error {
	if err := l.update(ctx); err != nil {
		return err
	}
	l.mu.RLock()
	if k := l.graphs[id]; k != nil {
		defer l.mu.RUnlock()
		return do(k.Graph)
	}
	l.mu.RUnlock()
	k, err := backend.AtOnce(ctx, l.store.View(), func(s backend.Snapshot) (*cachedGraph, error) { return newKept(ctx, s, id) })
	if err != nil {
		return err
	}
	if err := do(k.Graph); err != nil {
		return err
	}
	l.keep(id, k) // from here on it may change
	return nil
}

func newKept(ctx context.Context, s backend.Snapshot, id lineage.ThreadID) (*cachedGraph, error) {
	head, err := s.Head(ctx)
	if err != nil {
		return nil, err
	}
	t, err := s.Thread(ctx, id)
	if err != nil {
		return nil, err
	}
	k := &cachedGraph{active: t.Active, at: head.Number, tips: make(map[lineage.ContextID]lineage.SpanRef)}
	for c, err := range s.Contexts(ctx, id, lineage.ContextID{}) {
		if err != nil {
			return nil, err
		}
		k.tips[c.ID] = c.Tip
	}
	k.Graph, err = read(ctx, s, id)
	return k, err
}

// keep caches a graph, unless commits after it were applied to the other graphs in the meantime.
func (l *Live) keep(id lineage.ThreadID, k *cachedGraph) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	k.size = len(k.runs) + len(k.Labels) + len(k.tips)
	if k.at < l.mark.At.Number || l.graphs[id] != nil || k.size > l.limit {
		return
	}
	for l.kept+k.size > l.limit {
		oldest := lineage.ThreadID{}
		for id, graph := range l.graphs {
			if oldest.IsZero() || graph.used < l.graphs[oldest].used {
				oldest = id
			}
		}
		l.drop(oldest)
	}
	l.clock++
	k.used = l.clock
	l.graphs[id], l.kept = k, l.kept+k.size
	for c := range k.tips {
		l.contexts[c] = id
	}
}

func (l *Live) drop(id lineage.ThreadID) {
	k := l.graphs[id]
	if k == nil {
		return
	}
	for c := range k.tips {
		delete(l.contexts, c)
	}
	l.kept -= k.size
	delete(l.graphs, id)
}

// update updates the cached graphs.
func (l *Live) update(ctx context.Context) error {
	head, err := l.store.View().Head(ctx)
	if err != nil {
		return err
	}
	l.mu.RLock()
	current := l.mark.At == head && l.mark.Settled()
	l.mu.RUnlock()
	if current {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.graphs) == 0 || l.mark.At.Number+maxBehind < head.Number {
		if l.mark.Version == 0 || l.mark.At.Number < head.Number {
			l.restart(head)
		}
		return nil
	}
	f := derived.Follower[*Live]{Store: l.store, Target: l}
	_, err = f.Run(ctx)
	if errors.Is(err, lineage.ErrDiverged) { // the store lost commits
		l.restart(head)
		return nil
	}
	return err
}

// restart drops all graphs. The feed is then read from a commit on.
func (l *Live) restart(at backend.Cursor) {
	l.mark = derived.Mark{Store: l.store.ID(), At: at, Seen: at, Version: l.mark.Version + 1}
	l.forget()
}

// Mark implements derived.Target. Like the other methods of a target, it is called with the graphs locked.
func (l *Live) Mark(context.Context) (derived.Mark, error) { return l.mark, nil }

// Write implements derived.Target.
func (l *Live) Write(_ context.Context, do func(*Live) error) error { return do(l) }

// Swap implements derived.Target.
func (l *Live) Swap(_ context.Context, _ *Live, was, now derived.Mark) (bool, error) {
	if l.mark != was {
		return false, nil
	}
	l.mark = now
	return true, nil
}

// Apply implements derived.Target. An append changes graphs in place. After any other change, the graph of the thread
// is read again.
func (l *Live) Apply(ctx context.Context, w *derived.Window[*Live]) error {
	stale, moved, err := l.changed(ctx, w)
	if err != nil {
		return err
	}
	return w.Finish(ctx, func(*Live) error {
		for _, m := range moved {
			if k := l.graphs[m.thread]; k != nil && !stale[m.thread] {
				before := k.size
				k.move(m)
				l.kept += k.size - before
			}
		}
		for id := range stale {
			l.drop(id)
		}
		for _, k := range l.graphs {
			k.at = max(k.at, w.Head.Number)
		}
		return nil
	})
}

// changed returns the threads whose graphs must be read again, and the contexts that moved forward.
func (l *Live) changed(ctx context.Context, w *derived.Window[*Live]) (stale map[lineage.ThreadID]bool, moved []*move, err error) {
	c := &changedGraphs{live: l, window: w, stale: make(map[lineage.ThreadID]bool)}
	if err := c.readThreads(ctx); err != nil {
		return nil, nil, err
	}
	for _, names := range []map[derived.Name]bool{w.Changes.Branches, w.Changes.Checkpoints} {
		for name := range names {
			c.markStale(name.Thread)
		}
	}
	for id, change := range w.Changes.Contexts {
		m, err := c.readContext(ctx, id, &change)
		if err != nil {
			return nil, nil, err
		}
		if m != nil {
			moved = append(moved, m)
		}
	}
	return c.stale, moved, nil
}

// changedGraphs finds the graphs that the changes of a window are about.
type changedGraphs struct {
	live   *Live
	window *derived.Window[*Live]
	stale  map[lineage.ThreadID]bool
}

// outdated returns the graph of a thread if it is cached and older than the end of the window, and not stale.
func (c *changedGraphs) outdated(id lineage.ThreadID) *cachedGraph {
	if g := c.live.graphs[id]; g != nil && g.at < c.window.To.Number && !c.stale[id] {
		return g
	}
	return nil
}

func (c *changedGraphs) markStale(id lineage.ThreadID) {
	if c.outdated(id) != nil {
		c.stale[id] = true
	}
}

// readThreads marks the graphs of threads that changed.
func (c *changedGraphs) readThreads(ctx context.Context) error {
	for id, change := range c.window.Changes.Threads {
		g := c.outdated(id)
		if g == nil {
			continue
		}
		t, err := c.window.State.Thread(ctx, id)
		if err != nil && !errors.Is(err, lineage.ErrNotFound) {
			return err
		}
		if err != nil || change.Deleted || change.Keeps || t.Active != g.active {
			c.markStale(id)
		}
	}
	return nil
}

// readContext returns the forward move of a context that changed, nil if it has none. Any other change makes its graphs stale.
func (c *changedGraphs) readContext(ctx context.Context, id lineage.ContextID, change *derived.ContextChange) (*move, error) {
	thread, known := c.live.contexts[id]
	now, err := c.window.State.Context(ctx, id)
	if err != nil && !errors.Is(err, lineage.ErrNotFound) {
		return nil, err
	}
	if err != nil || !known || now.Thread != thread || change.Deleted || change.Stated {
		c.markStale(thread)
		if err == nil {
			c.markStale(now.Thread)
		}
		return nil, nil
	}
	g := c.outdated(thread)
	if g == nil || !change.Moved {
		return nil, nil
	}
	m, err := g.forward(ctx, c.window.State, &now)
	if m == nil && err == nil {
		c.markStale(thread)
	}
	return m, err
}

// move is a forward move of a context.
type move struct {
	thread  lineage.ThreadID
	context lineage.ContextID
	to      lineage.SpanRef
	// on is the end of its history on the line where it was. runs are the runs that follow, in order.
	on   lineage.SpanRef
	runs []backend.Extent
}

// forward returns how a context has moved. It returns nil if the context did not move forward from its end.
func (k *cachedGraph) forward(ctx context.Context, from backend.Reader, c *backend.Context) (*move, error) {
	was := k.tips[c.ID]
	m := &move{thread: c.Thread, context: c.ID, to: c.Tip, on: c.Tip}
	for !m.on.IsZero() && k.runs[m.on.Run] == nil {
		run, err := from.Run(ctx, m.on.Run)
		if err != nil {
			return nil, err
		}
		m.runs = append(m.runs, backend.Extent{Run: run, Last: m.on.Seq})
		m.on = run.Parent
	}
	slices.Reverse(m.runs)
	if m.on.Run != was.Run || m.on.Seq < was.Seq {
		return nil, nil
	}
	return m, nil
}

// move applies a forward move to a graph.
func (k *cachedGraph) move(m *move) {
	if line := k.runs[m.on.Run]; line != nil {
		line.Last = max(line.Last, m.on.Seq)
	}
	for _, e := range m.runs {
		if line := k.runs[e.Run.ID]; line != nil { // another context has moved there
			line.Last = max(line.Last, e.Last)
			continue
		}
		k.size++
		k.Add(&Line{Run: e.Run.ID, After: k.Place(e.Run.Parent), Before: e.Run.Depth, Last: e.Last})
	}
	was, now := k.Place(k.tips[m.context]), k.Place(m.to)
	k.tips[m.context] = m.to
	if m.context == k.active {
		k.SetCurrent(now)
	}
	if was == now {
		return
	}
	for _, l := range k.Labels[was] {
		if l.Context == m.context {
			k.Label(now, l)
		}
	}
	// Labels may be in use by a caller, so they are not changed in place.
	k.Labels[was] = slices.DeleteFunc(slices.Clone(k.Labels[was]), func(l Label) bool { return l.Context == m.context })
	if len(k.Labels[was]) == 0 {
		delete(k.Labels, was)
	}
}
