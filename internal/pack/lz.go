package pack

import "math/bits"

// The compression of texts and bodies: bytes are literals, or copies of what came
// before, in the dictionary too; what they are is coded by a range coder whose
// models go on from those at the end of the dictionary. The scheme is that of
// LZMA, with contexts for the byte before.
const (
	lzStates   = 12
	lzLeast    = 2   // the shortest copy, but for a single byte from the last distance
	lzMost     = 273 // the longest
	lzLenBits  = 4   // kinds of length that distances are modelled for
	lzClasses  = 44
	lzAlign    = 4
	lzFirstRaw = 14 // the first slot of distances whose lower bits are not all modelled
)

// lzModel is what the coding learns.
type lzModel struct {
	isMatch, isRep, isRep0, isRep1, isRep2, isLong [lzStates]prob
	literal                                        [lzClasses][256]prob
	differs                                        [8][2][256]prob // a literal behind a copy: given the byte that a longer one would bring
	matchLen, repLen                               lzLength
	slot                                           [lzLenBits][64]prob
	special                                        [128]prob
	align                                          [1 << lzAlign]prob
}

type lzLength struct {
	choice, choice2 prob
	low, mid        [8]prob
	high            [256]prob
}

// lzClass groups bytes by what follows them.
var lzClass = func() (class [256]uint8) {
	for i := range class {
		b := byte(i)
		switch {
		case b >= 'a' && b <= 'z':
			class[i] = b - 'a'
		case b >= 'A' && b <= 'Z':
			class[i] = 26
		case b >= '0' && b <= '9':
			class[i] = 27
		case b == ' ':
			class[i] = 28
		case b == '\n':
			class[i] = 29
		case b == '"':
			class[i] = 30
		case b == '\\':
			class[i] = 31
		case b == '.' || b == '!' || b == '?':
			class[i] = 32
		case b == ',' || b == ';':
			class[i] = 33
		case b == ':':
			class[i] = 34
		case b == '-' || b == '_':
			class[i] = 35
		case b == '/':
			class[i] = 36
		case b == '(' || b == '[' || b == '{' || b == '<':
			class[i] = 37
		case b == ')' || b == ']' || b == '}' || b == '>':
			class[i] = 38
		case b == '\'' || b == '`':
			class[i] = 39
		case b == 0:
			class[i] = 40
		case b < 32:
			class[i] = 41
		case b >= 0x80:
			class[i] = 42
		default:
			class[i] = 43
		}
	}
	return class
}()

func newLZModel() *lzModel {
	m := new(lzModel)
	start := prob{probStart, probStart}
	fill := func(p []prob) {
		for i := range p {
			p[i] = start
		}
	}
	for _, p := range [][]prob{m.isMatch[:], m.isRep[:], m.isRep0[:], m.isRep1[:], m.isRep2[:], m.isLong[:], m.special[:], m.align[:]} {
		fill(p)
	}
	for i := range m.literal {
		fill(m.literal[i][:])
	}
	for i := range m.differs {
		fill(m.differs[i][0][:])
		fill(m.differs[i][1][:])
	}
	for i := range m.slot {
		fill(m.slot[i][:])
	}
	for _, l := range []*lzLength{&m.matchLen, &m.repLen} {
		l.choice, l.choice2 = start, start
		fill(l.low[:])
		fill(l.mid[:])
		fill(l.high[:])
	}
	return m
}

// What the states become.
func afterLiteral(s int) int {
	switch {
	case s < 4:
		return 0
	case s < 10:
		return s - 3
	}
	return s - 6
}

func afterMatch(s int) int {
	if s < 7 {
		return 7
	}
	return 10
}

func afterRep(s int) int {
	if s < 7 {
		return 8
	}
	return 11
}

func afterShort(s int) int {
	if s < 7 {
		return 9
	}
	return 11
}

func (c *coder) length(l *lzLength, n int) int {
	v := n - lzLeast
	if c.bit(&l.choice, b2i(v >= 8)) == 0 {
		return lzLeast + c.tree(l.low[:], 3, v)
	}
	if c.bit(&l.choice2, b2i(v >= 16)) == 0 {
		return lzLeast + 8 + c.tree(l.mid[:], 3, v-8)
	}
	return lzLeast + 16 + c.tree(l.high[:], 8, v-16)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// distance codes how far back a copy begins, from 0 for the byte before.
func (c *coder) distance(m *lzModel, length int, d uint32) uint32 {
	slot := c.tree(m.slot[lengthKind(length)][:], 6, lzSlot(d))
	if slot < 4 {
		return uint32(slot)
	}
	n := slot>>1 - 1
	out := uint32(2|slot&1) << n
	d -= out
	if slot < lzFirstRaw {
		return out + c.reverse(m.special[out-uint32(slot):], n, d)
	}
	high := uint32(c.raw(uint64(d>>lzAlign), n-lzAlign))
	return out + high<<lzAlign + c.reverse(m.align[:], lzAlign, d&(1<<lzAlign-1))
}

func (c *coder) reverse(p []prob, n int, v uint32) uint32 {
	at, out := 1, uint32(0)
	for i := range n {
		bit := c.bit(&p[at], int(v>>i&1))
		at = at<<1 | bit
		out |= uint32(bit) << i
	}
	return out
}

func lengthKind(n int) int { return min(n-lzLeast, lzLenBits-1) }

// lzSlot returns the slot of a distance: its size and the bit below its highest.
func lzSlot(d uint32) int {
	if d < 4 {
		return int(d)
	}
	n := bits.Len32(d) - 1
	return n<<1 | int(d>>(n-1)&1)
}

// lit codes a literal.
func (c *coder) lit(m *lzModel, state int, before, match, b byte) byte {
	if state < 7 {
		return byte(c.tree(m.literal[lzClass[before]][:], 8, int(b)))
	}
	p := &m.differs[before>>5]
	at := 1
	for i := 7; i >= 0; i-- {
		want := int(match >> i & 1)
		bit := c.bit(&p[want][at], int(b>>i&1))
		at = at<<1 | bit
		if bit != want {
			for i--; i >= 0; i-- {
				at = at<<1 | c.bit(&m.literal[lzClass[before]][at], int(b>>i&1))
			}
			break
		}
	}
	return byte(at)
}

// lzAsks is after how many bytes unpacking asks whether to go on.
const lzAsks = 1 << 16

// unpack returns the bytes of a size that were packed after a dictionary. Stop, when not
// nil, is asked now and then whether to go on.
func (m *lzModel) unpack(packed, dict []byte, size int, stop func() error) ([]byte, error) {
	c := newReader(packed)
	buf := make([]byte, 0, size)
	var reps [4]uint32
	state := 0
	asks := 0
	for len(buf) < size {
		if stop != nil && len(buf) >= asks {
			if err := stop(); err != nil {
				return nil, err
			}
			asks = len(buf) + lzAsks
		}
		if c.spent() {
			return nil, errForm
		}
		at := len(buf)
		if c.get(&m.isMatch[state]) == 0 {
			var before byte
			if at > 0 {
				before = buf[at-1]
			} else if len(dict) > 0 {
				before = dict[len(dict)-1]
			}
			if state < 7 {
				buf = append(buf, c.getByte(&m.literal[lzClass[before]]))
			} else {
				var match byte
				if from := at - int(reps[0]) - 1; from >= 0 {
					match = buf[from]
				} else {
					match = dict[len(dict)+from]
				}
				buf = append(buf, c.lit(m, state, before, match, 0))
			}
			state = afterLiteral(state)
			continue
		}
		n := 0
		switch {
		case c.get(&m.isRep[state]) == 0:
			n = c.length(&m.matchLen, lzLeast)
			d := c.distance(m, n, 0)
			reps = [4]uint32{d, reps[0], reps[1], reps[2]}
			state = afterMatch(state)
		case c.get(&m.isRep0[state]) == 0:
			if c.get(&m.isLong[state]) == 0 {
				n, state = 1, afterShort(state)
			}
		case c.get(&m.isRep1[state]) == 0:
			reps[0], reps[1] = reps[1], reps[0]
		case c.get(&m.isRep2[state]) == 0:
			reps = [4]uint32{reps[2], reps[0], reps[1], reps[3]}
		default:
			reps = [4]uint32{reps[3], reps[0], reps[1], reps[2]}
		}
		if n == 0 {
			n = c.length(&m.repLen, lzLeast)
			state = afterRep(state)
		}
		from := at - int(reps[0]) - 1
		if from < -len(dict) || n > size-at {
			return nil, errForm
		}
		if from < 0 {
			part := dict[len(dict)+from:]
			k := min(n, len(part))
			buf = append(buf, part[:k]...)
			from, n = from+k, n-k
		}
		if from >= 0 && from+n <= len(buf) {
			buf = append(buf, buf[from:from+n]...)
		} else {
			for i := range n {
				buf = append(buf, buf[from+i])
			}
		}
	}
	return buf, nil
}
