package pack

import "math/bits"

// copier follows the place where the same bytes were last: it foretells the byte
// that came there. What is text in one place is often a JSON string in the other, so
// it goes on past characters that are escaped in one of them.
type copier struct {
	from   int // the place of the byte that is foretold
	length int // how many bytes before it were right; 0 for no forecast
	misses int // since the copy began
	ended  bool
	style  copyStyle
	half   bool    // the backslash of an escape was there, and its letter is due
	heads  []int32 // behind the latest place of so many bytes, by their hash
	shift  uint

	// The chance that a long copy ends, by its length, and by the bytes before and
	// the one that is foretold; and the weights of these.
	byLength [64]uint16
	byOne    [1 << 16]uint16
	byThree  [1 << 16]uint16
	weights  [2][3]int32
}

type copyStyle uint8

const (
	copyAsIs     copyStyle = iota
	copyEscape             // what is copied is escaped
	copyUnescape           // what is copied was
)

// copyUnsure bounds the length of a copy that was wrong about an escape.
const copyUnsure = 15

// escapeOf returns the letter that stands for a byte behind a backslash, or 0; and
// escaped the byte for the letter.
func escapeOf(b byte) byte {
	switch b {
	case '\n':
		return 'n'
	case '\t':
		return 't'
	case '\r':
		return 'r'
	case '"', '\\':
		return b
	}
	return 0
}

func escaped(letter byte) byte {
	switch letter {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case '"', '\\':
		return letter
	}
	return 0
}

// next returns the byte that is foretold.
func (p *copier) next(out []byte) byte {
	e := out[p.from]
	switch {
	case p.half:
		return escapeOf(e)
	case p.style == copyEscape && escapeOf(e) != 0:
		return '\\'
	case p.style == copyUnescape && e == '\\' && p.from+1 < len(out):
		if b := escaped(out[p.from+1]); b != 0 {
			return b
		}
	}
	return e
}

func (p *copier) begin(size int) {
	p.shift = uint(64 - min(max(bits.Len(uint(size)), 8), mixHeads))
	p.heads = make([]int32, 1<<(64-p.shift))
	const seldom = 2000
	for _, t := range [][]uint16{p.byLength[:], p.byOne[:], p.byThree[:]} {
		for i := range t {
			t[i] = seldom
		}
	}
	for i := range p.weights {
		p.weights[i] = [3]int32{20000, 20000, 20000}
	}
}

// expected returns the byte that is foretold, behind a one, or 0; how sure that
// is; and which weights to mix it with.
func (p *copier) expected(out []byte) (expect, kind, set int) {
	if p.length == 0 {
		return 0, 0, 0
	}
	expect = int(p.next(out)) | 256
	switch {
	case p.ended:
		return expect, mixWrong, 768
	case p.length < 16:
		kind, set = p.length, 256
	default:
		kind, set = min(16+(p.length-16)/4, 31), 512
	}
	return expect, kind | min(p.misses, 3)<<5, set
}

// goesOn codes whether a copy goes on with a byte.
func (p *copier) goesOn(c *coder, last uint64, e byte, yes bool) bool {
	a := &p.byLength[min((p.length-mixSure)/8, 15)|min(p.misses, 3)<<4]
	b := &p.byOne[last&0xff<<8|uint64(e)]
	d := &p.byThree[uint32(last&0xffffff<<8|uint64(e))*0x9e3779b1>>16]
	x0, x1, x2 := int64(logitOf[*a>>4]), int64(logitOf[*b>>4]), int64(logitOf[*d>>4])
	w := &p.weights[min(p.misses, 1)]
	logit := min(max(int((x0*int64(w[0])+x1*int64(w[1])+x2*int64(w[2]))>>16), -mostLogit), mostLogit)
	chance := int(chanceOf[logit+2048])
	end := c.chance(uint32(65536-chance), b2i(!yes))
	full := end<<16 - end
	wrong := int64(full - chance)
	w[0] += int32((x0*wrong + 0x8000) >> 17)
	w[1] += int32((x1*wrong + 0x8000) >> 17)
	w[2] += int32((x2*wrong + 0x8000) >> 17)
	*a += uint16((full - int(*a)) >> 6)
	*b += uint16((full - int(*b)) >> 4)
	*d += uint16((full - int(*d)) >> 4)
	p.ended = end == 1
	return end == 0
}

// push follows the copy past a byte, which is not in out yet.
func (p *copier) push(out []byte, b byte) {
	if p.from == 0 {
		return
	}
	p.ended = false
	e, after := out[p.from], byte(0)
	if p.from+1 < len(out) {
		after = out[p.from+1]
	}
	if b == p.next(out) {
		if p.length++; p.length > 32 {
			p.misses = 0
		}
		switch {
		case p.half:
			p.half = false
		case p.style == copyEscape && escapeOf(e) != 0:
			p.half = true
			return
		case p.style == copyUnescape && e == '\\' && escaped(after) != 0:
			p.from++
		}
		p.from++
		return
	}
	unsure := min(p.length, copyUnsure)
	switch {
	case p.half && p.from+1 < len(out) && e == '\\' && b == after: // it was escaped there, too
		p.half, p.style, p.length = false, copyAsIs, unsure
		p.from += 2
		return
	case p.half:
		p.half, p.style = false, copyAsIs
	case b == '\\' && escapeOf(e) != 0:
		p.half, p.style, p.length = true, copyEscape, unsure
		return
	case e == '\\' && after != 0 && b == escaped(after):
		p.style, p.length = copyUnescape, unsure
		p.from += 2
		return
	case b == e: // it is not escaped here
		p.style, p.length = copyAsIs, unsure
		p.from++
		return
	}
	p.length = 0
	if p.misses++; p.misses > mixMisses {
		p.from, p.misses = 0, 0
		return
	}
	p.from++
}

// look looks for a better copy where the last was wrong.
func (p *copier) look(out []byte, last uint64) {
	n := len(out)
	if n < mixLeast {
		return
	}
	hash := last << (64 - 8*mixLeast) * 0x9e3779b97f4a7c15 >> p.shift
	if p.length < mixLeast && !p.half {
		if at := int(p.heads[hash]); at > 0 {
			length := 0
			for length < 64 && length < at && out[at-1-length] == out[n-1-length] {
				length++
			}
			if length >= mixLeast {
				p.from, p.length, p.misses = at, length, 0
			}
		}
	}
	p.heads[hash] = int32(n)
}
