package embedded

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/entries"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// catalog is the index as of one commit with the packs below it.
type catalog struct {
	*index.Snapshot
	store *store
	files *journal.FileSet // nil for the current journal at each read
	packs *packLayer
	view  read.View // reads from the catalog
}

// view is the engine's state as of one commit.
type view struct {
	*read.View
	at *catalog
}

// catalog returns a catalog over a snapshot that was just taken: entries that the
// snapshot lacks were already in packs.
func (s *store) catalog(at *index.Snapshot, files *journal.FileSet) *catalog {
	c := &catalog{Snapshot: at, store: s, files: files, packs: s.packs.Load()}
	c.view = read.View{Index: c, Commits: c, Packs: c, Frames: &s.frames, Digests: s.cache}
	return c
}

// now returns a view of the current state. The caller must close it. It keeps reading the same files even if the
// journal is rewritten.
func (s *store) now() view {
	for {
		files := s.journalFiles()
		v := s.catalog(s.index.Snapshot(), files).viewed()
		if files == s.pinned || files.Current() {
			return v
		}
		v.Close()
	}
}

// latest returns the catalog of the current state. The caller must close it. Each read uses the current files of the
// journal, unless others are pinned.
func (s *store) latest() *catalog {
	var files *journal.FileSet
	if s.pinned != nil {
		files = s.pinned.Again()
	}
	return s.catalog(s.index.Snapshot(), files)
}

// journalFiles returns the current files of the journal, or the pinned ones. The caller must release it.
func (s *store) journalFiles() *journal.FileSet {
	if s.pinned != nil {
		return s.pinned.Again()
	}
	return s.journal.FileSet()
}

// viewed returns the view that reads from the catalog.
func (c *catalog) viewed() view { return view{&c.view, c} }

// Close releases the snapshot and the files.
func (c *catalog) Close() {
	c.Snapshot.Close()
	if c.files != nil {
		c.files.Release()
	}
}

// Get returns the value of a key. The caller must not change it.
func (c *catalog) Get(key []byte) ([]byte, bool, error) {
	v, ok, err := c.Snapshot.Get(key)
	if ok || err != nil {
		return v, ok, err
	}
	return c.packs.get(c.files, key, c.after())
}

// after returns the number after the catalog's last commit, because packs may have later commits.
func (c *catalog) after() uint64 { return c.State().Number + 1 }

// Object reads the block or chunk under a key. The key is a prefix of a hash, so the
// caller must compare the id.
func (c *catalog) Object(reader read.Reader, key []byte) (structure.Record, keys.Location, bool, error) {
	value, ok, err := c.Snapshot.Get(key)
	if err != nil {
		return nil, keys.Location{}, false, err
	}
	if ok {
		r, p, err := read.ReadObject(reader, value)
		return r, p, true, err
	}
	p, r, ok, err := c.packs.content(c.files, key, c.after())
	if err == nil && ok && r == nil {
		r, err = reader.Object(p.Frame, p.Record, p.Size)
	}
	return r, p, ok, err
}

// LastSpan returns the last span of a run, or the zero ref of an empty one.
func (c *catalog) LastSpan(run structure.RunID) (structure.SpanRef, error) {
	prefix := keys.Of(keys.TableSpan, run[:])
	e, ok, err := c.Last(prefix, keys.PrefixEnd(prefix))
	if err != nil {
		return structure.SpanRef{}, err
	}
	last := uint64(0)
	if ok {
		p, err := keys.ReadSpanLocation(e.Value)
		if err != nil {
			return structure.SpanRef{}, err
		}
		last = keys.ReadUint64(e.Key[len(prefix):])
		if p.Frame.Segment > c.packs.last {
			return structure.SpanRef{Run: run, Seq: last}, nil
		}
	}
	packed, err := c.packs.end(c.files, run, c.after())
	if last = max(last, packed); err != nil || last == 0 {
		return structure.SpanRef{}, err
	}
	return structure.SpanRef{Run: run, Seq: last}, nil
}

// Stats returns the counts of the index and the sizes of files.
func (v view) Stats(context.Context) (backend.Stats, error) {
	total := keys.CountersOf(v.at.State().Counts).Stats()
	store := v.at.store
	ofIndex, ofOthers, err := store.dir.sizes(store.journal.Segments)
	if err != nil {
		return backend.Stats{}, fmt.Errorf("stats: %w", err)
	}
	if store.opt.InMemory {
		ofIndex = store.index.Size()
	}
	ofIndex -= store.index.Mapped()
	total.IndexBytes, total.OtherBytes = uint64(ofIndex), uint64(ofOthers)
	for _, segment := range store.journal.Segments() {
		total.StoredBytes += uint64(segment.Bytes)
		if !segment.Packed {
			total.UnpackedBytes += uint64(segment.Bytes)
		}
	}
	total.StoredBytes += total.IndexBytes + total.OtherBytes
	return total, nil
}

// Name implements read.Index.
func (c *catalog) Name() string { return c.store.dir.index() }

// Cursor implements read.Index.
func (c *catalog) Cursor(from, to []byte) read.Cursor { return c.Snapshot.Cursor(from, to) }

// ManyChanged implements read.Index.
func (c *catalog) ManyChanged() {
	if c.State().Number == c.store.index.Number() {
		c.store.index.Fold()
	}
}

// NewReader implements read.Commits.
func (c *catalog) NewReader() read.Reader { return c.newReader() }

func (c *catalog) newReader() *journal.Reader {
	if c.files == nil {
		return c.store.journal.NewReader()
	}
	return c.files.NewReader()
}

// FileOf implements read.Commits.
func (c *catalog) FileOf(p journal.Position) string { return c.store.journal.SegmentName(p.Segment) }

// Damage implements read.Commits.
func (c *catalog) Damage() error { return c.store.damage }

// Collecting implements read.Commits.
func (c *catalog) Collecting() bool { return c.store.collecting.Barrier.Load() != nil }

// Own implements read.Packs.
func (c *catalog) Own(key []byte) ([]byte, bool, error) { return c.Snapshot.Get(key) }

// SpansAt implements read.Packs.
func (c *catalog) SpansAt(ref structure.SpanRef) (found journal.Spans, at journal.Position, keep bool, err error) {
	found, at, err = c.packs.spansAt(c.files, ref, c.after())
	return found, at, c.files != nil, err // the view keeps the pack open
}

var (
	_ read.Index   = (*catalog)(nil)
	_ read.Commits = (*catalog)(nil)
	_ read.Packs   = (*catalog)(nil)
	_ read.Digests = (*entries.Cache)(nil)
)

// get is Get of the latest state, limited to commits before the given one.
func (s *store) get(key []byte, before uint64) ([]byte, bool, error) {
	v, ok, err := s.index.Get(key)
	if ok || err != nil {
		return v, ok, err
	}
	return s.packs.Load().get(nil, key, before)
}
