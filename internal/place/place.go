// Package place finds or adds the messages that a source states: an archive, a chat database, the session of an
// agent. What the store has is not added again, what is new becomes a span, and what changed at the source becomes a
// new version.
//
// A [Placer] reads one state of a store and fills one batch. The commit of the batch tests what the Placer read: an id is
// free in its thread, and a span is the next of its run. The ids of runs that begin with messages without ids follow from
// the content. So if two importers add the same message, the engine refuses the second commit. Its batch is then filled by
// a new Placer, which finds what the first importer added.
package place

import (
	"bytes"
	"context"
	"crypto/sha256"
	"strconv"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// How states how the store has a message.
type How uint8

const (
	// Absent is a message that the store does not have.
	Absent How = iota
	// Known is a message that the store has.
	Known
	// Kept is a message that the store has in another serialization.
	Kept
	// Version is a message that the store has after the same span with other content.
	Version
	// Moved is a message that the store has after another span.
	Moved
)

// Has reports whether the store has the message at the position that the source states.
func (h How) Has() bool { return h == Known || h == Kept }

// Match is the result of Find.
type Match struct {
	How How
	// Span is the span with the message or, if the store has only other versions, with the latest one; zero if there
	// is none.
	Span structure.SpanRef
	// Batch is set if the message is in the batch and not yet in the store.
	Batch bool
	// Copy is set if Span belongs to another thread and the message is a copy of it with another id or time.
	Copy *Copy
	last uint64 // the lookup number of the latest version
}

// Rules describe what is special about a source.
type Rules struct {
	// Ends are the last positions of runs of the thread that the caller knows from its earlier batches.
	Ends map[structure.RunID]uint64
	// Own is set if the caller added everything in the thread, and each id once. Then ids are searched for in the
	// batch only.
	Own bool
	// NewThread is set if the batch creates the thread, so that nobody else can add to it.
	NewThread bool
	// Fresh is set if no run of the store may be continued: see write.Try.
	Fresh bool
	// Base has spans of other threads that are searched as well, such as the history that a fork shares with its origin.
	// Spans of the thread itself are always searched.
	Base backend.Reach
	// Copies is set if a message may be a copy of a span of another thread in Base, with another id and another time.
	Copies bool
	// Exact is set if a span of Base with another serialization of a message does not count as that message.
	Exact bool
	// Latest is set if the source has the current state of each message, as a database does: of the versions of an id
	// only the latest counts as known. So the id of a message always leads to what the source says.
	Latest bool
	// ByContent is set if a message equals a version of its id that has the same content, form, role, names and
	// metadata, regardless of who created it and when.
	ByContent bool
	// Same, when not nil, compares a message with a version of its id that looks different. A source may have less
	// than the store: the values of JSON without its layout, or a text that was erased here.
	Same func(m *Message, version *structure.Span) (bool, error)
	// Kept, when not nil, decides whether a version that says the same in another serialization counts as the message.
	Kept func(m *Message, version *structure.Span) (bool, error)
}

// equality is the result of a comparison. Messages that say the same in other forms are similar.
type equality uint8

const (
	different equality = iota
	similar
	equal
)

// Placer places messages in one thread. It is for one goroutine and one batch.
type Placer struct {
	history
	originals originals
	writer    *write.Writer
	rules     Rules

	batch    *write.Batch
	contents Contents
	ends     map[structure.RunID]uint64 // the last positions of runs that the batch continues or begins
	begun    map[structure.RunID]structure.SpanRef
	added    map[child]structure.SpanRef
	versions map[string]version // the latest version of each id in the batch

	message []byte // what the message says that is looked for
	other   []byte
}

// child is a message after a span, identified by what it says.
type child struct {
	after structure.SpanRef
	looks [32]byte
}

// version is a version of a message in the batch.
type version struct {
	after, span structure.SpanRef
	lookup      uint64
}

// New returns a placer for a thread in a fixed state of the store of w: a snapshot, or the stage of a transaction. It
// fills b, which has the given contents.
func New(ctx context.Context, w *write.Writer, from backend.Reader, b *write.Batch, in Contents, t *structure.Thread, rules Rules) *Placer {
	return &Placer{
		history:   history{ctx: ctx, from: from, thread: t, base: rules.Base, knownEnds: rules.Ends, ownThread: rules.Own && rules.Base == nil},
		originals: originals{ctx: ctx, from: from},
		writer:    w, rules: rules, batch: b, contents: in,
		ends: make(map[structure.RunID]uint64), begun: make(map[structure.RunID]structure.SpanRef),
		added: make(map[child]structure.SpanRef), versions: make(map[string]version),
	}
}

// search is a search for a message after a span.
type search struct {
	after structure.SpanRef
	*Message
	keptSpan structure.SpanRef
	copy     *Copy // of the span that was found
}

// Find looks for a message after a span: in the batch, in the next span of the run, among the versions of its id, and
// in the runs that begin there.
func (p *Placer) Find(after structure.SpanRef, m *Message) (Match, error) {
	p.message = appendLooks(p.message[:0], m, m.Usages, p.rules.ByContent, p.thread)
	latestOnly := p.rules.Latest && m.ID != ""
	if at, ok := p.addedAfter(after); ok && (!latestOnly || at == p.versions[m.ID].span) {
		return Match{How: Known, Span: at, Batch: true}, nil
	}
	if p.rules.Base == nil && (p.rules.NewThread || p.rules.Own && m.ID != "") {
		return p.inBatch(m), nil
	}
	s := search{after: after, Message: m}
	if !latestOnly {
		if match, err := p.continues(&s); match.How == Known || err != nil {
			return match, err
		}
	}
	var match Match
	if m.ID != "" {
		var err error
		if match, err = p.versionsOf(&s); match.How == Known || err != nil {
			return match, err
		}
	}
	// A message with an id is one of its versions. It can also be an earlier version that an older source brought, or a span of
	// another thread.
	if m.ID == "" || !latestOnly && (match.How != Absent || p.baseFollows(after)) {
		at, err := p.fork(&s)
		if err != nil {
			return match, err
		}
		if !at.IsZero() {
			return Match{How: Known, Span: at, Copy: s.copy}, nil
		}
	}
	if !s.keptSpan.IsZero() {
		return Match{How: Kept, Span: s.keptSpan}, nil
	}
	return match, nil
}

// addedAfter returns the span of the message that was added to the batch after another span, if it was.
func (p *Placer) addedAfter(after structure.SpanRef) (at structure.SpanRef, ok bool) {
	if len(p.added) == 0 {
		return at, false
	}
	at, ok = p.added[child{after, sha256.Sum256(p.message)}]
	return at, ok
}

// continues looks for the message in the next span of the run.
func (p *Placer) continues(s *search) (Match, error) {
	next, err := p.next(s.after)
	if next == nil || err != nil {
		return Match{}, err
	}
	if e, err := p.compare(s, next); e == equal || err != nil {
		return Match{How: Known, Span: next.Ref, Copy: s.copy}, err
	}
	return Match{}, nil
}

// inBatch returns the latest version of a message's id in the batch.
func (p *Placer) inBatch(m *Message) Match {
	v, ok := p.versions[m.ID]
	switch {
	case !ok || m.ID == "":
		return Match{}
	case p.added[child{v.after, sha256.Sum256(p.message)}] == v.span:
		return Match{How: Moved, Span: v.span, Batch: true, last: v.lookup}
	}
	return Match{How: Version, Span: v.span, Batch: true, last: v.lookup}
}

// compare compares the message with a span at the same position.
func (p *Placer) compare(s *search, span *structure.Span) (equality, error) {
	e, err := p.same(s.Message, span)
	if e != equal && err == nil && p.rules.Copies && p.rules.Base.Has(span.Ref) && p.rules.Base[span.Ref.Run].Run.Home != p.thread.Home() {
		if s.copy, err = p.originals.compare(s.Message, span); s.copy != nil {
			e = equal
		}
	}
	if e == similar && s.keptSpan.IsZero() && !(p.rules.Exact && p.rules.Base.Has(span.Ref)) {
		s.keptSpan = span.Ref
	}
	return e, err
}

func (p *Placer) same(m *Message, span *structure.Span) (equality, error) {
	p.other = appendLooks(p.other[:0], m, span.Usages, p.rules.ByContent, p.thread)
	if bytes.Equal(p.message, p.other) {
		return equal, nil
	}
	if p.rules.Same != nil && m.ID != "" {
		if same, err := p.rules.Same(m, span); same || err != nil {
			return equal, err
		}
		return different, nil
	}
	if !saySame(m.Usages, span.Usages) {
		return different, nil
	}
	if p.rules.Kept != nil {
		if kept, err := p.rules.Kept(m, span); !kept || err != nil {
			return different, err
		}
	}
	return similar, nil
}

// versionsOf looks for the message among the versions of its id, the latest first.
func (p *Placer) versionsOf(s *search) (Match, error) {
	match := p.inBatch(s.Message)
	if match.How != Absent && p.rules.Latest {
		return match, nil
	}
	for v, err := range p.from.Find(p.ctx, s.ID, p.thread.ID, backend.Found{}) {
		if err != nil {
			return match, err
		}
		latest := match.How == Absent
		if latest {
			match = Match{How: Version, Span: v.Span, last: v.Lookup}
		}
		e, inPlace, err := p.compareVersion(s, v.Span, latest)
		switch {
		case err != nil:
			return match, err
		case e == equal && inPlace:
			return Match{How: Known, Span: v.Span, last: match.last}, nil
		case e != different && latest:
			match.How = Moved
		}
		if p.rules.Latest {
			break
		}
	}
	return match, nil
}

// compareVersion compares the message with a version of its id. inPlace is set if the version is where the message belongs. A
// version elsewhere counts only if it is the latest.
func (p *Placer) compareVersion(s *search, at structure.SpanRef, latest bool) (e equality, inPlace bool, err error) {
	above, err := backend.Before(p.ctx, p.from, at)
	inPlace = above == s.after
	if err != nil || !inPlace && !latest {
		return different, inPlace, err
	}
	span, err := p.spanAfter(above, at)
	if err != nil {
		return different, inPlace, err
	}
	if inPlace {
		e, err = p.compare(s, span)
	} else {
		e, err = p.same(s.Message, span)
	}
	return e, inPlace, err
}

// spanAfter returns a span that follows another one. A source with the current state requests most spans of a run in
// order.
func (p *Placer) spanAfter(above, at structure.SpanRef) (*structure.Span, error) {
	if p.rules.Latest {
		if next, err := p.next(above); err != nil || next != nil && next.Ref == at {
			return next, err
		}
	}
	return p.span(at)
}

// next returns the span after another one in its run, or nil if there is none that may be compared.
func (p *Placer) next(after structure.SpanRef) (*structure.Span, error) {
	if p.isNew(after.Run) {
		return nil, nil
	}
	return p.history.next(after)
}

// isNew reports whether the batch begins a run.
func (p *Placer) isNew(run structure.RunID) bool {
	_, begun := p.begun[run]
	return begun
}

// fork looks for the message at the beginning of the runs that follow the span.
func (p *Placer) fork(s *search) (structure.SpanRef, error) {
	if may, err := p.beginsAfter(s.after); !may || err != nil {
		return structure.SpanRef{}, err
	}
	if s.after.IsZero() {
		roots, err := p.baseRoots()
		if err != nil {
			return structure.SpanRef{}, err
		}
		if at, err := p.firstEqual(s, roots); !at.IsZero() || err != nil {
			return at, err
		}
	}
	if p.isNew(s.after.Run) {
		return structure.SpanRef{}, nil
	}
	if at, err := p.derivedFork(s); !at.IsZero() || err != nil {
		return at, err
	}
	forks, err := p.forksAt(s.after)
	if err != nil {
		return structure.SpanRef{}, err
	}
	return p.firstEqual(s, forks)
}

// firstEqual returns the first of some spans that is the message, zero if none is.
func (p *Placer) firstEqual(s *search, spans []*structure.Span) (structure.SpanRef, error) {
	for _, span := range spans {
		if e, err := p.compare(s, span); e == equal || err != nil {
			return span.Ref, err
		}
	}
	return structure.SpanRef{}, nil
}

// derivedFork looks in the runs with the ids derived from the message.
func (p *Placer) derivedFork(s *search) (structure.SpanRef, error) {
	for n := uint64(0); ; n++ {
		first := structure.SpanRef{Run: p.derived(s.after, n), Seq: 1}
		if taken, err := p.taken(first.Run); !taken || err != nil {
			return structure.SpanRef{}, err
		}
		r, err := p.run(first.Run)
		if err != nil {
			return structure.SpanRef{}, err
		}
		if r.last == 0 {
			continue
		}
		span, err := p.span(first)
		if err != nil {
			return structure.SpanRef{}, err
		}
		if e, err := p.compare(s, span); e == equal || err != nil {
			return first, err
		}
	}
}

// derived returns the n-th derived id for a run that begins with the message. The next n is tried if a run has the id
// but not the message, because that was collected.
func (p *Placer) derived(after structure.SpanRef, n uint64) structure.RunID {
	home := p.thread.Home()
	return structure.DeriveID[structure.RunID]("place", string(home.Thread[:]), strconv.FormatUint(home.Incarnation, 16), string(after.Run[:]),
		strconv.FormatUint(after.Seq, 16), string(p.message), strconv.FormatUint(n, 16))
}
