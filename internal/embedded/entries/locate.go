package entries

import (
	"encoding/binary"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/structure"
)

// Locate adds the entries with places in the frame f, whose records are at the
// offsets. below may be nil.
func (b *Builder) Locate(f journal.Frame, offsets []int, below Below) {
	if b.below = below; below != nil && !below.Has(f.Position) {
		b.below = nil
	}
	if b.number%keys.CommitEvery == 1 && b.below == nil {
		k, start := b.slab.key(keys.TableCommit, keys.Uint64(b.number)), b.slab.begin()
		b.slab.buf = keys.AppendPosition(b.slab.buf, f.Position)
		b.Put(k, b.slab.end(start))
	}
	for id, place := range b.Blocks.All() {
		at := f.PayloadOffset + int64(offsets[place.Record])
		b.object(b.slab.key(keys.TableBlock, id[:keys.HashPrefix]), keys.Location{Frame: f.Position, Record: at, Size: place.Size})
	}
	for k, place := range b.Chunks.All() {
		at := f.PayloadOffset + int64(offsets[place.Record])
		b.object(b.slab.key(keys.TableChunk, k[:keys.HashPrefix]), keys.Location{Frame: f.Position, Record: at, Size: int64(len(place.Bytes))})
	}
	usages := uint32(0)
	for _, s := range b.Spans.All() {
		b.span(s, f.Position, usages)
		usages += uint32(len(s.Usages))
	}
}

func (b *Builder) object(k []byte, p keys.Location) {
	if b.below != nil && p.Size <= content.InlineLimit {
		b.below.Found(k, p, b.number)
		return
	}
	start := b.slab.begin()
	b.slab.buf = p.Append(b.slab.buf)
	b.Put(k, b.slab.end(start))
}

// span adds the entries of a span. usages is the number of earlier usages in the
// commit.
func (b *Builder) span(s judge.Span, frame journal.Position, usages uint32) {
	if b.below == nil || s.Ref.Seq%keys.DigestEvery == 0 {
		b.spanPlace(s, frame)
	}
	if !s.Set.IsZero() {
		k, start := b.slab.key(keys.TableAlternative, s.Set[:], keys.Uint64(b.number), keys.Uint64(uint64(s.Record))), b.slab.begin()
		b.slab.buf = keys.AppendRef(b.slab.buf, s.Ref)
		b.Put(k, b.slab.end(start))
	}
	for i := range s.Usages {
		u := &s.Usages[i]
		if _, ok := b.Blocks.Get(u.Content); !ok {
			b.usage(u.Content, b.number, usages+uint32(i), structure.UsageID{Span: s.Ref, Index: i})
		}
		// The usages of a form are many, and no query asks for them, so they have no entries.
		if aside := u.MetadataContent; !aside.IsZero() {
			if _, ok := b.Blocks.Get(aside); !ok {
				b.usage(aside, b.number, usages+uint32(i), structure.UsageID{Span: s.Ref, Index: i})
			}
		}
	}
}

func (b *Builder) spanPlace(s judge.Span, frame journal.Position) {
	start := b.slab.begin()
	b.slab.buf = append(b.slab.buf, keys.TableSpan)
	b.slab.buf = append(b.slab.buf, s.Ref.Run[:]...)
	b.slab.buf = binary.BigEndian.AppendUint64(b.slab.buf, s.Ref.Seq)
	k := b.slab.end(start)
	start = b.slab.begin()
	b.slab.buf = keys.AppendPosition(b.slab.buf, frame)
	if b.Digests || s.Ref.Seq%keys.DigestEvery == 0 {
		b.slab.buf = append(b.slab.buf, s.Digest[:]...)
	}
	b.Put(k, b.slab.end(start))
}
