package structure

import (
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/content"
)

// nameResolver resolves the names by which spans of a commit refer to content.
type nameResolver interface {
	// state adds ids stated by a span.
	state(ids []byte)
	// local returns the id of a name, counted backwards, for a usage of the span.
	local(usage int, back uint64) (content.ID, error)
	// aside is local for the other content that a usage names.
	aside(back uint64) (content.ID, error)
}

var errNotNamed = fmt.Errorf("%w: usage of content that the commit does not name", ErrMalformed)

// spanReader decodes a span of a commit.
type spanReader struct {
	decoder
	names  nameResolver
	time   time.Time // of the commit
	most   uint64    // number of usages that is too large
	unused uint64    // number of stated ids that no usage has named so far
}

// span decodes a span after another one. It reuses the memory of s.Usages.
func (c *spanReader) span(s *Span, last SpanRef) {
	flags := c.byte("span flags")
	if flags >= spanSeveral<<1 {
		c.fail("unknown span flags")
	}
	s.Ref = c.placeOf(flags, last)
	if flags&spanFollowed == 0 && follows(s.Ref, last) {
		c.fail("span spells out the place that it follows from")
	}
	if flags&spanInSet != 0 {
		s.Set = someID[SpanSetID](&c.decoder, "span set")
	}
	ids := c.stated(flags)
	c.names.state(ids)
	c.unused = uint64(len(ids) / len(content.ID{}))
	n := uint64(1)
	if flags&spanSeveral != 0 {
		const minUsage = 4 // bytes of the shortest usage, a part
		if n = c.uint("usages"); n < 2 || n > uint64(len(c.rest))/minUsage {
			c.fail("impossible number of usages")
			return
		}
	}
	if n >= c.most {
		c.fail("too many records and usages")
		return
	}
	if uint64(cap(s.Usages)) < n {
		s.Usages = make([]Usage, n)
	}
	s.Usages = s.Usages[:n]
	for i := range s.Usages {
		c.usage(&s.Usages[i], i)
	}
	if c.unused > 0 {
		c.fail("span states content that it does not use")
	}
}

// placeOf decodes the place of a span, which may follow from the last one.
func (c *decoder) placeOf(flags byte, last SpanRef) (ref SpanRef) {
	if flags&spanFollowed != 0 {
		ref = SpanRef{Run: last.Run, Seq: last.Seq + 1}
		if last.Seq == 0 || ref.Seq == 0 {
			c.fail("span follows none")
		}
	} else if ref = c.ref("span"); ref.Seq == 0 {
		c.fail("span without a place")
	}
	return ref
}

// stated decodes the ids stated by a span, one after the other.
func (c *decoder) stated(flags byte) []byte {
	if flags&spanNames == 0 {
		return nil
	}
	n := c.uint("stated ids")
	if n == 0 || n > uint64(len(c.rest)/len(content.ID{})) {
		c.fail("impossible number of stated ids")
		return nil
	}
	return c.take(n*uint64(len(content.ID{})), "stated ids")
}

// usage decodes the i-th usage of a span.
func (c *spanReader) usage(u *Usage, i int) {
	*u = Usage{}
	kind := c.byte("usage kind")
	u.Kind, u.Piece = UsageKind(kind&0xf), PieceKind(kind>>4)
	if u.Piece > lastPiece || u.Piece != 0 && u.Kind != MessageUsage && u.Kind != PartUsage {
		c.fail("unknown kind of usage")
	}
	present := Present(c.uint("usage flags"))
	if !present.Possible(u.Kind) {
		c.fail("impossible usage flags")
	}
	if back := c.back("content"); c.err == nil {
		u.Content, c.err = c.names.local(i, back)
	}
	switch u.Kind {
	case MessageUsage:
		if number := c.byte("role"); number == 0 {
			u.Role = c.string("role")
		} else if role, ok := RoleOf(int(number)); ok {
			u.Role = role
		} else if c.err == nil {
			c.err = fmt.Errorf("%w: role %d", ErrUnknownVersion, number)
		}
	case DocumentUsage:
		u.Document, u.Revision = c.string("document"), c.uint("revision")
	case AssetUsage:
		u.Filename = c.string("filename")
	case PartUsage:
	default:
		c.fail("unknown kind of usage")
	}
	u.CreatedAt = time.UnixMilli(c.time.UnixMilli() + c.int("created")).UTC()
	c.announced(u, present)
}

// announced decodes the optional fields of a usage.
func (c *spanReader) announced(u *Usage, present Present) {
	u.Opaque = present&IsOpaque != 0
	if present&HasSource != 0 {
		u.SourceID = c.someString("source id")
	}
	if present&HasMetadata != 0 {
		u.Metadata = c.bytes("metadata")
	}
	if present&HasBy != 0 {
		u.By = c.attribution()
	}
	if present&HasForm != 0 {
		u.Form = c.named("form")
	}
	if present&HasName != 0 {
		u.Name = c.someString("name")
	}
	if present&HasExtras != 0 {
		c.extras(u)
	}
	if present&HasOrigin != 0 {
		o := c.blockOrigin()
		u.Origin = &o
	}
	if present&HasType != 0 {
		if u.Type = c.mediaType(); u.Type == "" {
			c.fail("media type is announced but empty")
		}
	}
	if present&HasUnique != 0 {
		u.Lookup = 1
	}
	if present&HasVersion != 0 {
		if u.Lookup = c.uint("version"); u.Lookup < 2 {
			c.fail("impossible version")
		}
	}
	if present&HasMetadataContent != 0 {
		u.MetadataContent = c.named("metadata")
	}
}

// named decodes the other content that a usage names.
func (c *spanReader) named(what string) (id content.ID) {
	back := c.back(what)
	if c.err == nil {
		id, c.err = c.names.aside(back)
	}
	if c.err == nil && id.IsZero() {
		c.fail(what + " is announced but absent")
	}
	return id
}

// back decodes a name, counted backwards. The ids stated by a span must be used in order.
func (c *spanReader) back(what string) uint64 {
	back := c.uint(what)
	if back < c.unused {
		if c.unused--; back != c.unused {
			c.fail("span states content in another order than it uses it")
		}
	}
	return back
}

func (c *spanReader) extras(u *Usage) {
	n := c.uint("extras")
	if n == 0 || n > MostExtras || n > uint64(len(c.rest)) {
		c.fail("impossible number of extras")
		return
	}
	u.Extras = make([][]byte, n)
	size := 0
	var quoted []byte // the source id, shared by all extras that equal it
	for i := range u.Extras {
		length := c.uint("extra")
		switch {
		case length > 0:
			u.Extras[i] = c.take(length-1, "extra")
			if isQuoted(u.Extras[i], u.SourceID) {
				c.fail("extra spells out the source id")
			}
		case u.SourceID == "":
			c.fail("extra of no source id")
		default:
			if quoted == nil {
				quoted = slices.Concat([]byte{'"'}, []byte(u.SourceID), []byte{'"'})
			}
			u.Extras[i] = quoted[:len(quoted):len(quoted)]
		}
		size += len(u.Extras[i])
	}
	if size > MostExtraBytes {
		c.fail("extras are too large")
	}
}
