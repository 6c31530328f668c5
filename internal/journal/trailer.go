package journal

import (
	"encoding/binary"
)

// A trailer says of a commit what is no part of its payload. It is, integers little-endian:
//
//	flags, 1 byte: 1 for an id, 2 for a session, 4 for a commit of which it is not known
//	whether it is a request
//	the id of the commits from here on, 8 bytes
//	of the session, a varint: 0 when this is its first commit, 1 when it is named again,
//	otherwise how many commits before this one its last commit is, plus 1
//	for 0 and 1 the session's id, 16 bytes, and the sequence, a varint
//	otherwise the sequence less the one after that of the last commit: a zigzag varint
//
// The first commit that is written after the journal was opened, and the first of each segment,
// has an id; so has the first of a session in each segment. No segment refers to another.
const (
	trailerID      = 1
	trailerOnce    = 2
	trailerUnknown = 4
	// mostTrailer is the most that a trailer takes.
	mostTrailer = 1 + 8 + binary.MaxVarintLen64 + 16 + binary.MaxVarintLen64
)

// Once says which request of a session a commit is. A reader that follows the sessions finds
// out what a reference stands for: see Back.
type Once struct {
	// Session and Sequence are the id of the session and the number of the request in it. Both
	// are zero as read from a frame that refers to the session's last commit.
	Session  [16]byte
	Sequence uint64
	// First is set for the first commit of the session.
	First bool
	// Back is how many commits before this one the session's last commit is, 0 where the
	// session is named, and Step the sequence less the one after that of the last commit.
	Back uint64
	Step int64
	// Unknown is set for a commit that came from another store: which request it is there, if
	// any, is not known. The other fields are zero.
	Unknown bool
}

// OnceWrite is what a commit is to say of its session. LastCommit is 0 for the first of it.
type OnceWrite struct {
	Session      [16]byte
	Sequence     uint64
	LastCommit   uint64
	LastSequence uint64
	Unknown      bool // it is not known; the other fields are zero
}

// as returns what the frame of a commit says, in a segment that begins with another.
func (w *OnceWrite) as(number, first uint64) *Once {
	switch {
	case w == nil:
		return nil
	case w.Unknown:
		return &Once{Unknown: true}
	case w.LastCommit < first:
		return &Once{Session: w.Session, Sequence: w.Sequence, First: w.LastCommit == 0}
	}
	return &Once{Back: number - w.LastCommit, Step: int64(w.Sequence - w.LastSequence - 1)}
}

// appendTrailer writes a trailer; nothing for no id and no session.
func appendTrailer(dst []byte, id uint64, once *Once) []byte {
	if id == 0 && once == nil {
		return dst
	}
	flags := len(dst)
	dst = append(dst, 0)
	if id != 0 {
		dst[flags] |= trailerID
		dst = binary.LittleEndian.AppendUint64(dst, id)
	}
	if once == nil {
		return dst
	}
	if once.Unknown {
		dst[flags] |= trailerUnknown
		return dst
	}
	dst[flags] |= trailerOnce
	if once.Back > 0 {
		return binary.AppendVarint(binary.AppendUvarint(dst, once.Back+1), once.Step)
	}
	named := uint64(1)
	if once.First {
		named = 0
	}
	dst = append(binary.AppendUvarint(dst, named), once.Session[:]...)
	return binary.AppendUvarint(dst, once.Sequence)
}

// cutTrailer takes the trailer from the end of a frame.
func cutTrailer(b []byte) (payload, trailer []byte, ok bool) {
	if len(b) == 0 {
		return nil, nil, false
	}
	end := len(b) - 1
	start := end - int(b[end])
	if start < 0 || start == end {
		return nil, nil, false
	}
	return b[:start:start], b[start:end], true
}

// decodeTrailer reads what a trailer says. It refuses whatever appendTrailer does not write.
func (f *Frame) decodeTrailer(b []byte) bool {
	flags := b[0]
	if b = b[1:]; flags == 0 || flags > trailerID|trailerUnknown || flags&trailerOnce != 0 && flags&trailerUnknown != 0 {
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
	back, n := shortUvarint(b)
	if n == 0 {
		return false
	}
	b = b[n:]
	once := &Once{First: back == 0}
	if back > 1 {
		if once.Back = back - 1; once.Back >= f.Number {
			return false
		}
		step, n := shortUvarint(b)
		once.Step = int64(step>>1) ^ -int64(step&1)
		f.Once = once
		return n > 0 && n == len(b)
	}
	if len(b) < len(once.Session) {
		return false
	}
	b = b[copy(once.Session[:], b):]
	once.Sequence, n = shortUvarint(b)
	f.Once = once
	return n > 0 && n == len(b)
}
