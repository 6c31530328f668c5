// Package zframe decompresses single zstd frames that may be damaged or hostile, into no more memory
// than was stated.
package zframe

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

var (
	// ErrSize is returned for a frame that has another size than was stated.
	ErrSize = errors.New("compressed data have another size than was stated")
	// ErrTooLarge is returned for a frame that states a size above the limit.
	ErrTooLarge = errors.New("compressed data are too large")
)

// NewDecoder returns a decoder for frames of at most so many bytes. The options must be valid.
func NewDecoder(most uint64, options ...zstd.DOption) *zstd.Decoder {
	// With this limit the decoder stops at the capacity of its output, whatever follows the first frame.
	d, err := zstd.NewReader(nil, append([]zstd.DOption{zstd.WithDecoderMaxMemory(most), zstd.WithDecodeAllCapLimit(true)}, options...)...)
	if err != nil {
		panic(err)
	}
	return d
}

// Expand decompresses a frame of a known size.
func Expand(d *zstd.Decoder, b []byte, size int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return nil, err
	}
	if h.HasFCS && h.FrameContentSize != uint64(size) {
		return nil, ErrSize
	}
	out, err := d.DecodeAll(b, make([]byte, 0, size))
	if err == nil && len(out) != size {
		err = ErrSize
	}
	return out, err
}

// unstated is the size below which an encoder may leave the size of a frame out.
const unstated = 256

// ExpandStated decompresses a frame that states its size, which is at most most, or that is small.
func ExpandStated(d *zstd.Decoder, b []byte, most uint64) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return nil, err
	}
	if h.FrameContentSize > most {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, h.FrameContentSize, most)
	}
	if !h.HasFCS {
		return d.DecodeAll(b, make([]byte, 0, unstated))
	}
	return Expand(d, b, int(h.FrameContentSize))
}
