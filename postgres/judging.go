package postgres

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// judging judges commits, one after another, and makes the entries of their row. Entries are on the server and in the
// reader of the batch.
type judging struct {
	reader  *stateReader
	state   entries.State
	judge   judge.Judge
	builder entries.Builder
	encoder structure.Encoder
	counts  keys.Counters
	row     *logRow
	clock   *clock
}

// newJudging returns a judging whose cache knows recent contexts and ends of runs.
func newJudging(c *clock) *judging {
	j := &judging{clock: c}
	j.state.Latest, j.state.Cache = j, entries.NewCache()
	j.builder.Digests = true
	return j
}

// begin sets the state in which the next commits are judged.
func (j *judging) begin(t *stateReader) {
	t.added = newAdditions()
	j.reader, j.counts = t, keys.CountersOf(t.state.counts)
}

// prefetch reads what judging commits may read, at once.
func (j *judging) prefetch(ctx context.Context, all []*pending) error {
	var ks []judge.Key
	n := read.Need{}
	for _, p := range all {
		ks = append(ks, p.keys(j.reader.state.epoch != 0)...)
		j.needHomes(&n, p.commit)
		if p.o.Once != nil {
			n.Keys = append(n.Keys, keys.Of(keys.TableRequests, p.o.Once.Session[:]), keys.Of(keys.TableRequests))
		}
	}
	if err := j.state.Prefetch(ctx, &extraKeys{j.reader, n.Keys}, ks); err != nil {
		return err
	}
	n = read.Need{} // of homes that are known only now
	for _, p := range all {
		j.needHomes(&n, p.commit)
	}
	return j.reader.Prefetch(ctx, n)
}

// extraKeys adds keys to the first prefetch of a reader.
type extraKeys struct {
	*stateReader
	keys [][]byte
}

func (t *extraKeys) Prefetch(ctx context.Context, n read.Need) error {
	n.Keys = append(n.Keys, t.keys...)
	t.keys = nil
	return t.stateReader.Prefetch(ctx, n)
}

// needHomes adds what the times of last messages depend on, as far as the homes are known.
func (j *judging) needHomes(n *read.Need, c *structure.Commit) {
	last := structure.RunID{}
	for _, r := range c.Records {
		s, ok := r.(*structure.Span)
		if !ok || s.Ref.Run == last {
			continue
		}
		last = s.Ref.Run
		k := keys.Of(keys.TableRun, last[:])
		v, _ := j.reader.look(k)
		if v == nil { // the state is not known yet, but a run keeps its home
			if v, _ = j.reader.cache.entry(k, unlimited); v == nil {
				continue
			}
		}
		if info, err := keys.ReadRun(last, v); err == nil {
			n.Keys = append(n.Keys, keys.AppendMessage(nil, info.Home), keys.Of(keys.TableThread, info.Home.Thread[:]))
		}
	}
}

// next returns the number of the next commit.
func (j *judging) next() uint64 { return j.row.first + j.row.count }

// add judges a commit and adds it to the row, or replays it.
func (j *judging) add(ctx context.Context, c *structure.Commit, s embedded.Sequenced, offsets []int, replay bool) error {
	c.Number = j.next()
	j.state.Begin(c.Number, replay)
	defer j.judge.Release()
	effects, err := j.judge.Judge(ctx, judge.Case{Commit: c, View: &j.state, Replay: replay, WholeTrees: j.reader.state.epoch != 0})
	if err != nil {
		return err
	}
	b := &j.builder
	b.Begin(&j.state, effects)
	if err := b.Prefetch(ctx, j.reader); err != nil {
		return err
	}
	if err := b.Entries(len(c.Records)); err != nil {
		return err
	}
	at := positionOf(j.row.first, c.Number)
	b.Locate(journal.Frame{Position: at, PayloadOffset: at.Offset, Number: c.Number, ID: s.ID}, offsets, nil)
	requests, err := requestEntries(j.reader, j.clock, s)
	if err != nil {
		return err
	}
	for _, e := range requests {
		b.Put(e.Key, e.Value)
	}
	if later := b.Later(); later != nil {
		later.Make(nil, func(e index.Entry) { b.Put(e.Key, e.Value) })
	}
	j.counts = j.counts.Plus(&b.Counts)
	added := j.reader.added
	added.commits[j.row.first] = append(added.commits[j.row.first], s)
	j.state.Cache.Apply(b, func() {
		for _, e := range b.Batch {
			added.entries.Set(e.Key, e.Value)
		}
	})
	return nil
}

// seal completes the row: its data, its entries and the counts after it.
func (j *judging) seal() error {
	r := j.row
	var err error
	if r.output, err = newOutput(j.reader, r.last().Number, false); err != nil {
		return err
	}
	r.counts = j.counts.Values()
	for k := range j.reader.added.absent {
		if k := []byte(k); !j.reader.afterLastSpan(k) { // otherwise its group may have other spans
			r.absent = append(r.absent, k)
		}
	}
	return r.seal()
}

// The state as the judge and the builder read it.

var _ entries.Latest = (*judging)(nil)

// Get implements entries.Latest.
func (j *judging) Get(key []byte) ([]byte, bool, error) { return j.reader.Get(key) }

// GetBefore implements entries.Latest.
func (j *judging) GetBefore(key []byte, _ uint64) ([]byte, bool, error) { return j.reader.Get(key) }

// Scan implements entries.Latest.
func (j *judging) Scan(from, to []byte) iter.Seq2[index.Entry, error] { return j.reader.Scan(from, to) }

// View implements entries.Latest.
func (j *judging) View() *read.View {
	v := j.reader.view()
	v.Frames, v.Digests = nil, nil // the row may not be written
	return v
}

// NewContext implements entries.Latest.
func (j *judging) NewContext(structure.ContextID) bool { return false }

// NewRun implements entries.Latest.
func (j *judging) NewRun(structure.RunID) bool { return false }

// NewLookup implements entries.Latest. Other processes store source ids, too.
func (j *judging) NewLookup(judge.Lookup) bool { return false }

// AnyErased implements entries.Latest.
func (j *judging) AnyErased() bool { return j.counts.Erased > 0 }

// Collecting implements entries.Latest.
func (j *judging) Collecting() bool { return false }

// Closed implements entries.Latest.
func (j *judging) Closed(structure.RunID) bool { return false }

// Deleting implements entries.Latest.
func (j *judging) Deleting([]byte) (bool, error) { return false, nil }

// OwnUsages implements entries.Latest.
func (j *judging) OwnUsages(state read.Getter, id content.ID, _ uint64) ([]read.Usage, error) {
	var failed error
	var hidden func(structure.SpanRef) bool
	if j.reader.state.collecting { // the commit may still have spans that are gone
		hidden = func(r structure.SpanRef) bool {
			_, ok, err := j.reader.Get(keys.Span(r))
			if err != nil {
				failed = err
			}
			return !ok
		}
	}
	v := j.View()
	usages, err := v.OwnUsages(state, id, hidden)
	if err == nil {
		err = failed
	}
	return usages, err
}

// HasBlock implements judge.Stored.
func (j *judging) HasBlock(id content.ID) (bool, error) {
	_, ok, err := j.reader.Get(keys.Block(id))
	if err != nil || !ok || !j.AnyErased() {
		return ok, err
	}
	_, erased, err := j.reader.Get(keys.Of(keys.TableErased, id[:]))
	return !erased, err
}

// HasChunk implements judge.Stored.
func (j *judging) HasChunk(k content.Key) (bool, error) {
	_, ok, err := j.reader.Get(keys.Chunk(k))
	return ok, err
}
