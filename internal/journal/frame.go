package journal

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/lineage-store/lineage/internal/varint"
	"github.com/lineage-store/lineage/structure"
)

// A frame is, integers little-endian:
//
//	0  length of what follows the checksum, 4 bytes
//	4  CRC-32C of the segment's salt, the length and what follows, 4 bytes
//	8  commit number × 2, plus 1 for a mark: a varint
//	   the commit number less that of the last durable commit, × 2, plus 1 when a
//	   trailer follows the payload: a varint
//	   the payload: a commit's binary form; nothing for a mark
//	   the trailer (see trailer.go), and its length as a byte
//
// Varints are as short as they can be. A mark has no trailer.
//
// A mark adds no commit. It repeats the number of the last one, as evidence that
// the commits before it are durable when no later commit proves it.
const (
	frameHeader = 8
	// frameOverhead is the largest difference between the sizes of a frame and its
	// payload.
	frameOverhead = frameHeader + 2*binary.MaxVarintLen64 + maxTrailer + 1
	// minFrame is the smallest size of a frame.
	minFrame = frameHeader + 2
	// maxNumber is the largest number of a commit.
	maxNumber = 1<<63 - 1
	// MaxPayload is the largest payload of a frame.
	MaxPayload = 1 << 30
)

// Frame is a decoded frame.
type Frame struct {
	Position Position
	// End is the offset after the frame.
	End int64
	// Number is the number of its commit.
	Number uint64
	// Durable is the last commit that was known to be durable when the frame was
	// written.
	Durable uint64
	// Mark is set for a frame without a commit.
	Mark bool
	// Packed is set for a frame from a pack, which does not store Once.
	Packed bool
	// ID is the id of the commits from this one on, or 0 if the frame does not
	// state it.
	ID uint64
	// Once is the commit's request in a session, or nil.
	Once *Once
	// Commit is the decoded commit in place of the payload and where it was, in a frame of Commits from a pack.
	Commit *structure.Commit
	// Payload is the commit's binary form. It must not be changed.
	Payload []byte
	// PayloadOffset is the offset of the payload in the segment.
	PayloadOffset int64
	// Offsets are the original offsets of the records in the payload, if they
	// differ from the current ones. They must not be changed.
	Offsets []int
}

// appendFrame appends a frame to dst and returns the offset of the payload in it.
// An empty trailer is left out.
func appendFrame(dst []byte, saltCRC uint32, number, durable uint64, mark bool, payload, trailer []byte) (frame []byte, payloadAt int) {
	start := len(dst)
	dst = append(dst, make([]byte, frameHeader)...)
	tagged := number << 1
	if mark {
		tagged |= 1
	}
	dst = binary.AppendUvarint(dst, tagged)
	lag := (number - durable) << 1
	if len(trailer) > 0 {
		lag |= 1
	}
	dst = binary.AppendUvarint(dst, lag)
	payloadAt = len(dst) - start
	dst = append(dst, payload...)
	if len(trailer) > 0 {
		dst = append(append(dst, trailer...), byte(len(trailer)))
	}
	f := dst[start:]
	binary.LittleEndian.PutUint32(f, uint32(len(f)-frameHeader))
	binary.LittleEndian.PutUint32(f[4:], frameChecksum(saltCRC, f))
	return dst, payloadAt
}

func frameChecksum(saltCRC uint32, frame []byte) uint32 {
	return crc32.Update(crc32.Update(saltCRC, castagnoli, frame[:4]), castagnoli, frame[frameHeader:])
}

// frameSize returns the size of the frame that starts with b, or 0 if b does not
// start a frame. b has at least the size of a frame header.
func frameSize(b []byte) int64 {
	n := int64(binary.LittleEndian.Uint32(b))
	if n < 2 || n > MaxPayload+frameOverhead {
		return 0
	}
	return frameHeader + n
}

// decodeFrame decodes b as a frame. ok is false if its checksum is wrong or it is
// malformed.
func decodeFrame(b []byte, saltCRC uint32) (f Frame, ok bool) {
	if len(b) < minFrame || frameSize(b) != int64(len(b)) || frameChecksum(saltCRC, b) != binary.LittleEndian.Uint32(b[4:]) {
		return Frame{}, false
	}
	return decodeBody(b)
}

// decodeBody is decodeFrame without the checksum.
func decodeBody(b []byte) (f Frame, ok bool) {
	tagged, n := varint.Minimal(b[frameHeader:])
	if n == 0 {
		return Frame{}, false
	}
	lag, m := varint.Minimal(b[frameHeader+n:])
	f = Frame{Number: tagged >> 1, Mark: tagged&1 != 0}
	if m == 0 || lag>>1 > f.Number {
		return Frame{}, false
	}
	f.Durable = f.Number - lag>>1
	f.PayloadOffset = int64(frameHeader + n + m)
	b = b[f.PayloadOffset:len(b):len(b)]
	if lag&1 != 0 {
		var trailer []byte
		if b, trailer, ok = cutTrailer(b); !ok || !f.decodeTrailer(trailer) {
			return Frame{}, false
		}
	}
	f.Payload = b
	if f.Mark && (len(f.Payload) > 0 || lag&1 != 0) {
		return Frame{}, false
	}
	return f, true
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Position is where a frame starts.
type Position struct {
	Segment uint32
	Offset  int64
}

// decodeTrailer decodes a trailer. It refuses everything that appendTrailer does not write.
func (f *Frame) decodeTrailer(b []byte) bool {
	flags := b[0]
	if b = b[1:]; flags == 0 || flags > trailerID|trailerUnknown { // never a session and unknown
		return false
	}
	if flags&trailerID != 0 {
		if len(b) < 8 {
			return false
		}
		f.ID, b = binary.LittleEndian.Uint64(b), b[8:]
		if f.ID == 0 {
			return false
		}
	}
	if flags&trailerUnknown != 0 {
		f.Once = &Once{Unknown: true}
	}
	if flags&trailerOnce == 0 {
		return len(b) == 0
	}
	back, n := varint.Minimal(b)
	if n == 0 {
		return false
	}
	b = b[n:]
	once := &Once{First: back == 0}
	if back > 1 {
		if once.Back = back - 1; once.Back >= f.Number {
			return false
		}
		step, n := varint.Minimal(b)
		once.Step = int64(step>>1) ^ -int64(step&1)
		f.Once = once
		return n > 0 && n == len(b)
	}
	if len(b) < len(once.Session) {
		return false
	}
	b = b[copy(once.Session[:], b):]
	once.Sequence, n = varint.Minimal(b)
	f.Once = once
	return n > 0 && n == len(b)
}
