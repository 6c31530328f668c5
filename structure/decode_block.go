package structure

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/lineage-store/lineage/content"
)

func (c *decoder) mediaType() string {
	code := c.byte("media type")
	if code == 0 {
		return c.string("media type")
	}
	t, ok := content.TypeOfCode(code)
	if !ok && c.err == nil {
		c.err = fmt.Errorf("%w: media type %d", ErrUnknownVersion, code)
	}
	return t
}

func (c *decoder) blockOrigin() (o content.BlockOrigin) {
	kind := c.byte("origin kind")
	o.Kind = content.OriginKind(kind >> 1)
	if kind&1 != 0 {
		if o.ParentID = c.contentID("parent content"); o.ParentID.IsZero() {
			c.fail("parent content is announced but absent")
		}
	}
	return o
}

func (c *decoder) attribution() (by content.Attribution) {
	flags := c.byte("attribution flags")
	if flags == 0 || flags >= bySource<<1 {
		c.fail("unknown attribution flags")
	}
	if flags&byUser != 0 {
		by.UserID = c.someString("user id")
	}
	if flags&byModel != 0 {
		by.ModelID = c.someString("model id")
	}
	if flags&bySource != 0 {
		by.SourceID = c.someString("source id")
	}
	return by
}

func (c *decoder) block(b *Block) {
	start := c.rest
	b.Type, b.Origin, b.CreatedAt = c.mediaType(), c.blockOrigin(), c.time("created")
	form := c.byte("body form")
	switch form {
	case bodyWhole:
	case bodyTree:
		b.ID = c.contentID("content id")
		copy(b.Tree.Key[:], c.take(uint64(len(b.Tree.Key)), "tree key"))
		b.Tree.Height = c.byte("tree height")
		size := c.uint("size")
		if size == 0 || size > maxTreeSize {
			c.fail("impossible size of a tree")
		}
		b.Tree.Size = int64(size)
		b.Size = b.Tree.Size
	case bodyGone:
		b.ID = c.contentID("content id")
		size := c.uint("size")
		if size == 0 || size > maxTreeSize {
			c.fail("impossible size of a body")
		}
		b.Size = int64(size)
	default:
		c.fail("unknown form of a body")
	}
	head := start[:len(start)-len(c.rest)]
	sum := c.take(4, "checksum")
	if c.err == nil && binary.LittleEndian.Uint32(sum) != crc32.Checksum(head, castagnoli) {
		c.fail("checksum does not match")
	}
	if c.err == nil && form == bodyWhole {
		b.Body = c.rest
		b.ID, b.Size = content.Sum(b.Body), int64(len(b.Body))
		c.rest = nil
	}
}
