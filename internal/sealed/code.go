package sealed

import (
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/internal/zframe"
)

// Heaps and the directory are zstd frames, or as they are where that is not smaller.

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true)) // the options are valid
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	return zframe.NewDecoder(maxBlock, zstd.WithDecoderConcurrency(0))
})

// bomb reports whether a compressed size is implausibly small for the size that it expands to.
func bomb(compressed, size int) bool { return size > 1<<20 && size/4096 > compressed }

// compress appends b compressed, or b if that is not smaller, or a bomb.
func compress(dst, b []byte) []byte {
	start := len(dst)
	dst = encoder().EncodeAll(b, dst)
	if n := len(dst) - start; n >= len(b) || bomb(n, len(b)) {
		dst = append(dst[:start], b...)
	}
	return dst
}

// expand returns the bytes that compress was given, of which the size is known. They may share the
// memory of b.
func expand(b []byte, size int) ([]byte, error) {
	if len(b) == size {
		return b, nil
	}
	if bomb(len(b), size) {
		return nil, ErrDamaged
	}
	out, err := zframe.Expand(decoder(), b, size)
	if err != nil {
		return nil, ErrDamaged
	}
	return out, nil
}
