package journal

import (
	"encoding/binary"
)

// A trailer describes a commit outside its payload. It is, integers little-endian:
//
//	flags, 1 byte: 1 for an id, 2 for a session, 4 for a commit of which it is not known
//	whether it is a request
//	the id of the commits from here on, 8 bytes
//	of the session, a varint: 0 for its first commit, 1 if it is identified again, otherwise
//	the distance to its last commit, plus 1
//	for 0 and 1 the session's id, 16 bytes, and the sequence, a varint
//	otherwise the sequence less the one after that of the last commit: a zigzag varint
//
// The first commit after the journal is opened and the first of each segment state the id; the
// first of a session in each segment states the session. No segment refers to another.
const (
	trailerID      = 1
	trailerOnce    = 2
	trailerUnknown = 4
	// maxTrailer is the largest size of a trailer.
	maxTrailer = 1 + 8 + binary.MaxVarintLen64 + 16 + binary.MaxVarintLen64
)

// Once is a commit's request in a session. A reader that follows the sessions can resolve
// references: see Back.
type Once struct {
	// Session and Sequence are the id of the session and the number of the request in it. Both
	// are zero in a frame that refers to the session's last commit.
	Session  [16]byte
	Sequence uint64
	// First is set for the first commit of the session.
	First bool
	// Back is the distance to the session's last commit, or 0 if Session is set. Step is the
	// difference between the sequence and the expected one, which follows that of the last commit.
	Back uint64
	Step int64
	// Unknown is set for a commit that came from another store: which request it is there, if
	// any, is not known. The other fields are zero.
	Unknown bool
}

// OnceWrite is the request of a commit to write. LastCommit is 0 for the first of a session.
type OnceWrite struct {
	Session      [16]byte
	Sequence     uint64
	LastCommit   uint64
	LastSequence uint64
	Unknown      bool // it is not known; the other fields are zero
}

// as returns the request as stored in the frame of a commit, in a segment that starts with
// commit first.
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

// appendTrailer appends a trailer, or nothing without id and session.
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

// cutTrailer splits the trailer from the end of a frame.
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
