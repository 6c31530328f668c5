package archive

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// place is where a history of some digest ends in the store.
type place struct {
	ref structure.SpanRef
	own identity
	// after is a hash of the span before it: what goes on from a message is taken
	// from the history that the message was taken from.
	after uint32
	// inner says that a history of the thread goes on from here.
	inner bool
	// owner is the number of the conversation that the span was made for, 0 for one
	// that was in the store.
	owner uint32
}

// digestKey is enough of a digest to tell histories apart: to find two that share
// it costs 2^64 hashes.
type digestKey [16]byte

func keyOf(d structure.Digest) digestKey { return digestKey(d[:16]) }

// ownSeed makes hashes of one process comparable.
var ownSeed = maphash.MakeSeed()

// identity is what is a message's own beside what it says, as hashes: its source
// id, time and metadata. 0 is for what it has not.
type identity struct{ id, created, metadata uint32 }

func identityOf(id string, created time.Time, metadata []byte) identity {
	var i identity
	if id != "" {
		i.id = uint32(maphash.String(ownSeed, id)) | 1
	}
	if !created.IsZero() {
		i.created = uint32(maphash.Comparable(ownSeed, created.UnixMilli())) | 1
	}
	if metadata != nil {
		i.metadata = uint32(maphash.Bytes(ownSeed, metadata)) | 1
	}
	return i
}

// differs reports whether there is something that is not as in the other.
func (i identity) differs(other identity) bool {
	return i.id != 0 && i.id != other.id || i.created != 0 && i.created != other.created ||
		i.metadata != 0 && i.metadata != other.metadata
}

// afterOf returns the hash that a place after a span has.
func afterOf(ref structure.SpanRef) uint32 { return uint32(maphash.Comparable(ownSeed, ref)) }

// prefixes remembers where histories are that were met lately, so that what
// begins like one of them can share it.
type prefixes struct {
	young, old map[digestKey]place
	// lost is set once something was forgotten: what is not found may be in the store.
	lost bool
}

// prefixGeneration is how many histories are remembered at least, and half of how
// many at most, which take some 50 MB.
const prefixGeneration = 256 << 10

func newPrefixes() *prefixes { return &prefixes{young: make(map[digestKey]place)} }

// get returns where the history with a digest ends that goes on from a span.
func (p *prefixes) get(d structure.Digest, after structure.SpanRef) (place, bool) {
	at, ok := p.find(d)
	return at, ok && at.after == afterOf(after)
}

func (p *prefixes) find(d structure.Digest) (place, bool) {
	k := keyOf(d)
	at, ok := p.young[k]
	if !ok && p.old != nil {
		if at, ok = p.old[k]; ok {
			p.put(d, at)
		}
	}
	return at, ok
}

func (p *prefixes) put(d structure.Digest, at place) {
	if len(p.young) >= prefixGeneration {
		p.lost = p.lost || p.old != nil
		p.old, p.young = p.young, make(map[digestKey]place, prefixGeneration)
	}
	p.young[keyOf(d)] = at
}

// finder finds histories in the store by what they say.
type finder struct {
	ctx    context.Context
	engine backend.Engine
}

// maxCandidates is how many places are looked at for one that fits.
const maxCandidates = 256

// root returns the span that begins a history with what the usages say.
func (f finder) root(usages []structure.Usage, digest structure.Digest) (place, bool, error) {
	seen := 0
	for u, err := range f.engine.Where(f.ctx, usages[0].Content) {
		if err != nil {
			return place{}, false, err
		}
		if seen++; seen > maxCandidates {
			break
		}
		if u.Index != 0 || u.Span.Seq != 1 {
			continue
		}
		run, err := f.engine.Run(f.ctx, u.Span.Run)
		if err != nil {
			return place{}, false, err
		}
		if run.Depth != 0 {
			continue
		}
		if at, ok, err := f.check(u.Span, structure.SpanRef{}, digest); ok || err != nil {
			return at, ok, err
		}
	}
	return place{}, false, nil
}

// child returns the span that goes on from a parent with a digest.
func (f finder) child(parent structure.SpanRef, digest structure.Digest) (place, bool, error) {
	last, err := f.engine.Last(f.ctx, parent.Run)
	if errors.Is(err, lineage.ErrNotFound) {
		return place{}, false, nil // on its way into the store
	}
	if err != nil {
		return place{}, false, err
	}
	if last.Seq > parent.Seq {
		next := structure.SpanRef{Run: parent.Run, Seq: parent.Seq + 1}
		if at, ok, err := f.check(next, parent, digest); ok || err != nil {
			return at, ok, err
		}
	}
	seen := 0
	for run, err := range f.engine.ForksAt(f.ctx, parent) {
		if err != nil {
			return place{}, false, err
		}
		if seen++; seen > 16*maxCandidates {
			break
		}
		if last, err := f.engine.Last(f.ctx, run.ID); err != nil || last.IsZero() {
			continue
		}
		if at, ok, err := f.check(structure.SpanRef{Run: run.ID, Seq: 1}, parent, digest); ok || err != nil {
			return at, ok, err
		}
	}
	return place{}, false, nil
}

// check returns a span after another as a place if its history has the digest and
// none of what it says was erased.
func (f finder) check(ref, after structure.SpanRef, digest structure.Digest) (place, bool, error) {
	is, err := f.engine.Digest(f.ctx, ref)
	if errors.Is(err, lineage.ErrNotFound) || err == nil && is != digest {
		return place{}, false, nil
	}
	if err != nil {
		return place{}, false, err
	}
	for step, err := range f.engine.Path(f.ctx, ref, structure.Window{Last: 1}, backend.PathOptions{}) {
		if err != nil {
			return place{}, false, err
		}
		at := placeOf(step.Span)
		at.after = afterOf(after)
		for i := range step.Span.Usages {
			has, err := f.engine.Has(f.ctx, []lineage.ContentID{step.Span.Usages[i].Content})
			if err != nil || !has[0] {
				return place{}, false, err
			}
		}
		return at, true, nil
	}
	return place{}, false, nil
}

// placeOf returns a span of the store as a place.
func placeOf(s *structure.Span) place {
	u := &s.Usages[0]
	return place{ref: s.Ref, own: identityOf(u.SourceID, u.CreatedAt, u.Metadata)}
}
