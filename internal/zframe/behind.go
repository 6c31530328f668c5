package zframe

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// behind decompresses frames that were compressed with a dictionary. It puts the dictionary into each frame, as blocks
// that are not compressed: the decoder is several times faster without a dictionary, which outweighs the copies.
type behind struct {
	decoder *zstd.Decoder
	dict    []byte // the one that in begins with
	prefix  int    // size of the start of in
	in, out []byte
}

// unused are the ones that nobody uses, with the memory of their last frames.
var unused = sync.Pool{New: func() any {
	return &behind{decoder: NewDecoder(mostBehind, zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(true))}
}}

const (
	// mostBehind limits the size of a frame and its dictionary together. The caller limits the stated size, and so the memory.
	mostBehind = 1 << 31
	// kept is the memory for a frame that is kept for the next one.
	kept = 8 << 20
	// slack is memory after the output, which lets the decoder write without looking for its end.
	slack = 64
)

// Constants of the zstd format, for frames of one segment whose header states the size in four bytes.
const (
	magic         = 0xfd2fb528
	singleSegment = 1<<5 | 2<<6
	hasChecksum   = 1 << 2
	headerSize    = 9
	maxBlock      = 128 << 10
)

// ExpandBehind decompresses a frame of a known size that was compressed with a dictionary of raw content. It is safe for
// concurrent use. The dictionary must not change afterwards.
func ExpandBehind(dict, frame []byte, size int) ([]byte, error) {
	b := unused.Get().(*behind)
	defer func() {
		if cap(b.in)+cap(b.out) > kept {
			b.dict, b.in, b.out = nil, nil, nil
		}
		unused.Put(b)
	}()
	return b.expand(dict, frame, size)
}

func (b *behind) expand(dict, frame []byte, size int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil {
		return nil, err
	}
	switch {
	case h.Skippable, h.HasFCS && h.FrameContentSize != uint64(size):
		return nil, ErrSize
	case h.DictionaryID == 0 || len(dict) == 0:
		return Expand(b.decoder, frame, size)
	}
	b.begin(dict)
	b.in = append(b.in[:b.prefix], frame[h.HeaderSize:]...)
	b.in[4] = singleSegment
	if h.HasCheckSum {
		b.in[4] |= hasChecksum
	}
	binary.LittleEndian.PutUint32(b.in[5:], uint32(len(dict)+size))
	b.out = slices.Grow(b.out[:0], len(dict)+size+slack)
	out, err := b.decoder.DecodeAll(b.in, b.out)
	if err == nil && len(out) != len(dict)+size {
		err = ErrSize
	}
	if err != nil {
		return nil, err
	}
	return slices.Clone(out[len(dict):]), nil
}

// begin makes the frame begin with a dictionary.
func (b *behind) begin(dict []byte) {
	if len(b.dict) == len(dict) && &b.dict[0] == &dict[0] {
		return
	}
	b.in = slices.Grow(b.in[:0], headerSize+len(dict)+3*(len(dict)/maxBlock+1)+maxBlock)[:headerSize]
	binary.LittleEndian.PutUint32(b.in, magic)
	for block := range slices.Chunk(dict, maxBlock) {
		b.in = append(b.in, byte(len(block)<<3), byte(len(block)>>5), byte(len(block)>>13))
		b.in = append(b.in, block...)
	}
	b.dict, b.prefix = dict, len(b.in)
}
