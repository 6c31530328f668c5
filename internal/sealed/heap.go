package sealed

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/lineage-store/lineage/internal/varint"
)

// A heap has the texts of a block, one after the other. Ids and hashes in texts are random digits, which
// no compressor stores in half their size among other text, so a heap can be a skeleton and digits: in
// the skeleton, an escape byte and a code stand for each run of hexadecimal digits.
//
// Stored is its size (varint); unless that is 0, the number of bytes of digits (varint), and these; if there are any, the
// size of the skeleton (varint); the skeleton, or else the texts, compressed if that is smaller.

const (
	// escape begins what is not a byte of a text. A code follows.
	escape = 0x01
	// The codes. From minRun to maxRun it is half the number of digits of a run, and from sameRun on
	// sameRun plus how many other runs back the same one is.
	escapeItself = 0
	uuidRun      = 1
	minRun       = 5
	maxRun       = 127
	sameRun      = 128
	// uuidSize is the size of a UUID in a text.
	uuidSize = 36
)

// appendHeap appends a heap as it is stored.
func appendHeap(dst, texts []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	if len(texts) == 0 {
		return dst
	}
	start := len(dst)
	dst = compress(append(dst, 0), texts)
	skeleton, digits := splitDigits(texts)
	if len(digits) == 0 || len(skeleton) > len(texts) {
		return dst
	}
	b := binary.AppendUvarint(nil, uint64(len(digits)))
	b = binary.AppendUvarint(append(b, digits...), uint64(len(skeleton)))
	before := len(b)
	b = compress(b, skeleton)
	if stored := len(b) - before; len(b) < len(dst)-start && !bomb(len(digits)+stored, len(texts)) {
		dst = append(dst[:start], b...)
	}
	return dst
}

// readHeap reads a heap.
func readHeap(r *varint.Reader) (h heap) {
	if h.size = r.Size(maxBlock); h.size == 0 {
		r.Bad = r.Bad || len(r.Rest) > 0
		return h
	}
	h.digits = r.Take(r.Next())
	whole := h.size
	if h.skeleton = whole; len(h.digits) > 0 {
		h.skeleton = r.Size(whole)
	}
	h.stored = r.Rest
	if r.Bad || h.skeleton < len(h.stored) || bomb(len(h.digits)+len(h.stored), whole) {
		r.Bad = true
	}
	return h
}

// heap reads the texts of a block.
type heap struct {
	size     int    // of the texts
	digits   []byte // of runs in the skeleton
	skeleton int    // its size; that of the texts if there are no digits
	stored   []byte
}

// plain reports whether the texts are stored as they are.
func (h *heap) plain() bool { return len(h.digits) == 0 && h.size == len(h.stored) }

// texts returns the texts.
func (h *heap) texts() ([]byte, error) {
	b, err := expand(h.stored, h.skeleton)
	if err == nil && len(h.digits) > 0 {
		b, err = joinDigits(b, h.digits, h.size)
	}
	return b, err
}

// splitDigits returns the skeleton of texts and the digits of its runs.
func splitDigits(texts []byte) (skeleton, digits []byte) {
	known := map[string]int{} // which run
	runs, copied := 0, 0
	put := func(from, to int, code byte) {
		skeleton = append(skeleton, texts[copied:from]...)
		copied = to
		if code == escapeItself {
			skeleton = append(skeleton, escape, code)
			return
		}
		run := string(texts[from:to])
		if n, ok := known[run]; ok && runs-n <= 0xff-sameRun+1 {
			skeleton = append(skeleton, escape, byte(sameRun+runs-n-1))
			return
		}
		known[run] = runs
		runs++
		skeleton = append(skeleton, escape, code)
		digits = appendDigits(digits, texts[from:to])
	}
	for i := 0; i < len(texts); {
		if texts[i] == escape {
			put(i, i+1, escapeItself)
		}
		if !isDigit(texts[i]) {
			i++
			continue
		}
		end := i
		for end < len(texts) && isDigit(texts[end]) {
			end++
		}
		uuid := -1 // where one begins
		if at := end - 8; at >= i && isUUID(texts[at:]) {
			uuid, end = at, at
		}
		for _, part := range runsOf(texts[i:end]) {
			put(i, i+part, byte(part/2))
			i += part
		}
		if i = end; uuid >= 0 {
			put(uuid, uuid+uuidSize, uuidRun)
			i += uuidSize
		}
	}
	return append(skeleton, texts[copied:]...), digits
}

// runsOf returns the sizes of the runs that digits are divided into, from their start; none if they are
// better left as text.
func runsOf(digits []byte) (sizes []int) {
	number := true // decimal numbers have more in common than their digits
	for _, c := range digits {
		number = number && c <= '9'
	}
	for n := len(digits) &^ 1; !number && n >= 2*minRun; n -= sizes[len(sizes)-1] {
		sizes = append(sizes, min(n, 2*maxRun))
	}
	return sizes
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// isUUID reports whether b begins with a UUID in lower case.
func isUUID(b []byte) bool {
	if len(b) < uuidSize {
		return false
	}
	for i, c := range b[:uuidSize] {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !isDigit(c) {
			return false
		}
	}
	return true
}

// appendDigits appends the bytes of hexadecimal digits, leaving out dashes.
func appendDigits(dst, run []byte) []byte {
	var memory [2 * maxRun]byte
	all := memory[:0]
	for _, c := range run {
		if c != '-' {
			all = append(all, c)
		}
	}
	dst, _ = hex.AppendDecode(dst, all) // they are digits
	return dst
}

// appendUUID appends an id in the form of a UUID.
func appendUUID(dst []byte, id [idSize]byte) []byte {
	var text [2 * idSize]byte
	hex.Encode(text[:], id[:])
	at := 0
	for i, part := range [...]int{8, 4, 4, 4, 12} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = append(dst, text[at:at+part]...)
		at += part
	}
	return dst
}

// joinDigits returns the texts of a skeleton, of which the size is known.
func joinDigits(skeleton, digits []byte, size int) ([]byte, error) {
	dst := make([]byte, 0, size)
	var last [0xff - sameRun + 1]struct{ from, to int } // the places in dst of the last runs of digits, in a ring
	runs := 0
	for {
		n := bytes.IndexByte(skeleton, escape)
		text := skeleton
		if n >= 0 {
			text = skeleton[:n]
		}
		if len(text) > size-len(dst) {
			return nil, ErrDamaged
		}
		if dst = append(dst, text...); n < 0 {
			break
		}
		if n+1 == len(skeleton) {
			return nil, ErrDamaged
		}
		code := int(skeleton[n+1])
		skeleton = skeleton[n+2:]
		from := len(dst)
		switch {
		case code == escapeItself:
			if from == size {
				return nil, ErrDamaged
			}
			dst = append(dst, escape)
			continue
		case code >= sameRun:
			back := code - sameRun + 1
			if back > runs {
				return nil, ErrDamaged
			}
			run := last[(runs-back)%len(last)]
			if run.to-run.from > size-from {
				return nil, ErrDamaged
			}
			dst = append(dst, dst[run.from:run.to]...)
			continue
		case code == uuidRun:
			if len(digits) < idSize || size-from < uuidSize {
				return nil, ErrDamaged
			}
			dst = appendUUID(dst, [idSize]byte(digits))
			digits = digits[idSize:]
		case code >= minRun:
			if len(digits) < code || size-from < 2*code {
				return nil, ErrDamaged
			}
			dst = hex.AppendEncode(dst, digits[:code])
			digits = digits[code:]
		default:
			return nil, ErrDamaged
		}
		last[runs%len(last)] = struct{ from, to int }{from, len(dst)}
		runs++
	}
	if len(dst) != size || len(digits) > 0 {
		return nil, ErrDamaged
	}
	return dst, nil
}
