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
	j := joiner{texts: make([]byte, size), digits: digits}
	for {
		next := bytes.IndexByte(skeleton, escape)
		if next < 0 {
			break
		}
		if next+1 == len(skeleton) || !j.text(skeleton[:next]) || !j.code(int(skeleton[next+1])) {
			return nil, ErrDamaged
		}
		skeleton = skeleton[next+2:]
	}
	if !j.text(skeleton) || j.size < size || len(j.digits) > 0 {
		return nil, ErrDamaged
	}
	return j.texts, nil
}

// joiner joins the parts of a skeleton. Its methods return false for what is damaged.
type joiner struct {
	texts  []byte                    // with space for all
	size   int                       // of those that were joined
	digits []byte                    // of the runs that follow
	runs   int                       // the number of runs that were joined, without repetitions
	places [0xff - sameRun + 1]place // of the last of these runs, in a ring
}

// place is the part of a slice that begins at from and ends before to.
type place struct{ from, to int }

func (j *joiner) text(b []byte) bool {
	if len(b) > len(j.texts)-j.size {
		return false
	}
	j.size += copy(j.texts[j.size:], b)
	return true
}

// code adds what the code after an escape stands for.
func (j *joiner) code(code int) bool {
	switch {
	case code == escapeItself:
		return j.text([]byte{escape})
	case code == uuidRun:
		digits, text, ok := j.run(idSize, uuidSize)
		if ok {
			appendUUID(text[:0], [idSize]byte(digits))
		}
		return ok
	case code >= sameRun:
		back := code - sameRun + 1
		if back > j.runs {
			return false
		}
		run := j.places[(j.runs-back)%len(j.places)]
		return j.text(j.texts[run.from:run.to])
	case code >= minRun:
		digits, text, ok := j.run(code, 2*code)
		if ok {
			hex.Encode(text, digits)
		}
		return ok
	default:
		return false
	}
}

// run returns the digits of the next run and the space for its text.
func (j *joiner) run(size, textSize int) (digits, text []byte, ok bool) {
	if len(j.digits) < size || len(j.texts)-j.size < textSize {
		return nil, nil, false
	}
	run := place{j.size, j.size + textSize}
	j.places[j.runs%len(j.places)] = run
	j.runs++
	j.size = run.to
	digits, j.digits = j.digits[:size], j.digits[size:]
	return digits, j.texts[run.from:run.to], true
}
