package read

import (
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// spansOfCommit gives access to the spans of a commit.
type spansOfCommit interface {
	Len() int
	Ref(i int) structure.SpanRef
	// Find returns the index of a span, or -1.
	Find(structure.SpanRef) int
	// Read reads a span. With own set, its memory is not shared.
	Read(i int, own bool, into *structure.Reading) error
}

// SpanReader reads spans from the journal. When spans are read in order,
// consecutive spans of a commit, and consecutive commits of the journal, need no
// index lookup.
type SpanReader struct {
	view   *View
	reader Reader
	places spanPlaces

	// The current commit:
	at     journal.Position
	number uint64
	end    int64         // start of the next frame, where the next span is likely to be
	spans  spansOfCommit // nil before the first
	next   int           // index of the span after the last one read
	shared bool          // the commit is in the frame cache, or about to be

	layout structure.Layout // of a commit that is not cached
	small  bool             // the commit is too small for the cache
	guess  guess
}

// NewSpanReader returns a reader of spans.
func (v *View) NewSpanReader() *SpanReader {
	return &SpanReader{view: v, reader: v.Commits.NewReader(), places: spanPlaces{view: v}}
}

// Read reads a span. The spans of its run up to last are likely to be read next.
func (r *SpanReader) Read(ref structure.SpanRef, last uint64, into *structure.Reading) error {
	if r.spans == nil || r.next >= r.spans.Len() || r.spans.Ref(r.next) != ref {
		if err := r.find(ref, last); err != nil {
			return err
		}
	}
	if err := r.spans.Read(r.next, r.shared, into); err != nil {
		return r.corrupt(err.Error())
	}
	r.next++
	return nil
}

// find moves to a span: to the next commit if the span is likely to be there,
// otherwise to the place in the index.
func (r *SpanReader) find(ref structure.SpanRef, last uint64) error {
	behind := journal.Position{Segment: r.at.Segment, Offset: r.end}
	guessed := r.spans != nil && r.view.Ahead == nil && r.guess.worth()
	if guessed {
		hit := r.load(behind, ref, last) == nil && r.next >= 0
		r.guess.was(hit)
		if hit {
			return nil
		}
	}
	p, err := r.places.at(ref)
	if err != nil {
		return err
	}
	if !guessed {
		r.guess.saw(p == behind)
	}
	if r.spans != nil && r.at == p {
		r.next = r.spans.Find(ref)
	}
	if r.spans == nil || r.at != p || r.next < 0 { // a pack may return only some spans of a commit
		if err := r.load(p, ref, last); err != nil {
			return err
		}
	}
	if r.next < 0 {
		return r.corrupt(fmt.Sprintf("span %v is not in the commit that the index names", ref))
	}
	return nil
}

// load makes the commit at a position the current one, and sets next to the index
// of the span, or to -1 if the commit does not have it.
func (r *SpanReader) load(p journal.Position, ref structure.SpanRef, last uint64) error {
	like := r.small && r.at.Segment == p.Segment
	r.at, r.spans = p, nil
	if like { // not in a pack, and likely as small as the last one
		return r.loadFrame(p, ref, last, journal.File{})
	}
	file, packed, err := r.reader.Place(p, ref)
	if err != nil {
		return err
	}
	if packed != nil {
		r.number, r.end, r.spans, r.shared, r.small = packed.Number, packed.Next, packed, false, false
		r.next = packed.Find(ref)
		return nil
	}
	if c := r.view.Frames.get(frameKey{file, p}); c != nil {
		r.number, r.end, r.spans, r.shared, r.small = c.number, c.end, c.layout, true, false
		r.next = c.layout.Find(ref)
		return nil
	}
	return r.loadFrame(p, ref, last, file)
}

// loadFrame reads a frame of a segment. It caches a large frame if only a small
// part is needed.
func (r *SpanReader) loadFrame(p journal.Position, ref structure.SpanRef, last uint64, file journal.File) error {
	frame, err := r.reader.Frame(p)
	if err != nil {
		return err
	}
	r.number, r.end = frame.Number, frame.End
	if err := r.layout.Reset(frame.Payload); err != nil {
		return r.corrupt(err.Error())
	}
	r.spans, r.shared, r.small = &r.layout, false, len(frame.Payload) < minCached
	if r.next = r.layout.Find(ref); r.next < 0 || r.small {
		return nil
	}
	if file == (journal.File{}) {
		if file, _, err = r.reader.Place(p, ref); err != nil {
			return err
		}
	}
	wanted := 1
	for i := r.next + 1; i < r.layout.Len() && ref.Seq+uint64(wanted) <= last && r.layout.Ref(i).Seq == ref.Seq+uint64(wanted); i++ {
		wanted++
	}
	if 2*wanted < r.layout.Len() && r.view.Frames != nil {
		c := &cachedFrame{number: r.number, end: r.end, layout: r.layout.Clone()}
		r.view.Frames.put(frameKey{file, p}, c)
		r.spans, r.shared = c.layout, true
	}
	return nil
}

func (r *SpanReader) corrupt(what string) error {
	return &backend.CorruptError{File: r.reader.Name(), Offset: r.at.Offset, What: what}
}

// guess decides whether to try the next commit for the next span of a run before using the index. If only one context
// grows, the guess is right. If several grow alternately, it is wrong, and is tried ever less often.
type guess struct {
	seen, need int
}

const maxNeed = 64

func (g *guess) worth() bool { return g.seen > g.need }

// saw records whether the index returned the commit that would have been guessed.
func (g *guess) saw(behind bool) {
	if g.seen++; !behind {
		g.seen = 0
	}
}

// was records whether a guess was right.
func (g *guess) was(right bool) {
	if right {
		if g.seen++; g.seen > 2*maxNeed {
			g.need = 0
		}
		return
	}
	g.seen, g.need = 0, min(2*g.need+1, maxNeed)
}

// spanPlaces looks up the frames of the spans of a run, mostly in order.
type spanPlaces struct {
	view   *View
	last   structure.SpanRef
	cursor Cursor        // set after the second lookup in order
	ahead  index.Entry   // the last entry read; if packs have entries, it may be ahead of the lookup
	packed journal.Spans // of the last run, in the last pack used
}

// nearPlace is the largest distance between places for which the cursor skips
// instead of a new lookup.
const nearPlace = 64

// at returns the position of the frame of a span. Spans soon after the last one are read with a cursor, others are looked up.
func (s *spanPlaces) at(ref structure.SpanRef) (journal.Position, error) {
	near := s.last.Run == ref.Run && ref.Seq > s.last.Seq && ref.Seq-s.last.Seq <= nearPlace
	if s.last.Run != ref.Run {
		s.packed = journal.Spans{}
	}
	s.last = ref
	if s.packed.Has(ref.Seq) {
		return s.packed.Position(ref.Seq)
	}
	key := keys.Span(ref)
	if !near || s.view.Ahead != nil { // what was prefetched is looked up at once
		s.cursor = nil
		value, ok, err := s.own(key)
		if err != nil {
			return journal.Position{}, err
		}
		return s.place(ref, value, ok)
	}
	if err := s.moveTo(key); err != nil {
		return journal.Position{}, err
	}
	return s.place(ref, s.ahead.Value, string(s.ahead.Key) == string(key))
}

// moveTo moves the cursor to the first entry from a key on, which becomes s.ahead.
func (s *spanPlaces) moveTo(key []byte) error {
	if s.cursor == nil {
		s.cursor, s.ahead = s.view.Index.Cursor(key, keys.PrefixEnd(key[:len(key)-8])), index.Entry{}
	} else {
		s.cursor.Skip(key)
	}
	if string(s.ahead.Key) >= string(key) {
		return nil
	}
	e, ok, err := s.cursor.Next()
	if err != nil {
		return err
	}
	if s.ahead = e; !ok {
		s.ahead = index.Entry{}
	}
	return nil
}

// own looks up a key in the index itself.
func (s *spanPlaces) own(key []byte) ([]byte, bool, error) {
	if s.view.Packs != nil {
		return s.view.Packs.Own(key)
	}
	return s.view.Index.Get(key)
}

// place decodes the index value of a span, or looks into packs if there is none.
func (s *spanPlaces) place(ref structure.SpanRef, value []byte, ok bool) (journal.Position, error) {
	if ok {
		p, err := keys.ReadSpanLocation(value)
		return p.Frame, err
	}
	if s.view.Packs == nil {
		return journal.Position{}, s.view.missingSpan(ref)
	}
	found, at, keep, err := s.view.Packs.SpansAt(ref)
	switch {
	case err != nil:
		return journal.Position{}, err
	case found.RunSpans == nil:
		return journal.Position{}, s.view.missingSpan(ref)
	case keep:
		s.packed = found
	}
	return at, nil
}

func (v *View) missingSpan(ref structure.SpanRef) error {
	return &backend.CorruptError{File: v.Index.Name(), What: fmt.Sprintf("span %v is missing; to repair: %s", ref, backend.RebuildIndex)}
}
