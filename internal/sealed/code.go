package sealed

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Heaps and the directory are zstd frames, or as they are where that is not smaller.

var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true)) // the options are valid
	return e
})

var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxBlock),
		zstd.WithDecodeAllCapLimit(true)) // the options are valid
	return d
})

// bomb reports whether so many bytes claim to expand to more than anything does that is worth it.
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
	// The header of the first frame states its size, and the decoder stops at the capacity, whatever frames follow.
	var h zstd.Header
	if err := h.Decode(b); err != nil || bomb(len(b), size) || !h.HasFCS || h.FrameContentSize != uint64(size) {
		return nil, ErrDamaged
	}
	out, err := decoder().DecodeAll(b, make([]byte, 0, size))
	if err != nil || len(out) != size {
		return nil, ErrDamaged
	}
	return out, nil
}
