package pack

import "math/bits"

// The compression of a dense pack that is all base: each bit's chance is foretold by
// what followed the last bytes, the last two, and so on, and by the place where the
// same bytes were last; the forecasts are mixed by weights that are learned, and
// the bit is coded with what comes of it. Where a copy has held for long, a byte
// takes one bit: whether it goes on. The scheme is that of the PAQ family.
const (
	mixOrders  = 5       // forecasts by contexts; one more is that of the copy
	mixLeast   = 7       // bytes that agree where a copy begins
	mixSure    = 20      // a copy of this length is asked whether it goes on
	mixMisses  = 16      // after so many wrong bytes a copy is given up
	mixSlots   = 16      // histories of four bits of a byte, by those before; and the check
	mixHeads   = 18      // bits of the hash of places
	mixWrong   = 128     // the first of copyChances, by bit, when the byte is known to be another
	mixRefined = 16      // steps of logits that forecasts are corrected for
	mixAsks    = 1 << 12 // bytes after which it is asked whether to go on
)

// mixer codes bytes, in the direction of its coder.
type mixer struct {
	c    *coder
	out  []byte
	last uint64 // eight bytes
	word uint32 // of the letters since the last other byte

	// Histories by the bits before in the same half of the byte, for each context with
	// the first half if it is the second. Index 0 is the check: it tells contexts apart
	// that share a place in a table.
	first   [256 * 17][mixSlots]uint8
	tables  [mixOrders - 1][][mixSlots]uint8
	chances [mixOrders]chances
	weights [1024][mixOrders + 1]int32
	// refined corrects a forecast, given the byte before and the bits before.
	refined []uint16

	copy        copier
	copyChances [256]uint16
}

// newMixer returns a mixer for a number of bytes.
func newMixer(c *coder, size int) *mixer {
	m := &mixer{c: c, out: make([]byte, 0, size)}
	slots := 1 << min(max(bits.Len(uint(size)/16), 8), 17)
	for i := range m.tables {
		m.tables[i] = make([][mixSlots]uint8, slots)
	}
	for i := range m.chances {
		m.chances[i] = firstChance
	}
	for i := range m.weights {
		for k := range m.weights[i] {
			m.weights[i][k] = 1 << 14
		}
	}
	for i := range m.copyChances {
		m.copyChances[i] = 3 << 14
	}
	row := make([]uint16, mixRefined)
	for i := range row {
		row[i] = chanceOf[min(i*4096/(mixRefined-1), 4095)]
	}
	m.refined = make([]uint16, 1<<16*mixRefined)
	for i := copy(m.refined, row); i < len(m.refined); i *= 2 {
		copy(m.refined[i:], m.refined[:i])
	}
	m.copy.begin(size)
	return m
}

// slot returns the histories of a context.
func (m *mixer) slot(table int, hash uint32) *[mixSlots]uint8 {
	t := m.tables[table]
	check := uint8(hash >> 24)
	at := hash & uint32(len(t)-1)
	a := &t[at]
	if a[0] == check {
		return a
	}
	b := &t[at^1]
	if b[0] == check {
		return b
	}
	c := &t[at^2]
	if c[0] == check {
		return c
	}
	if a[1] > b[1] || a[1] > c[1] { // of the three, the one that was seen least
		if a = b; b[1] > c[1] {
			a = c
		}
	}
	*a = [mixSlots]uint8{check}
	return a
}

// mixHash spreads a context over a table.
func mixHash(v uint64) uint32 { return uint32(v * 0x9e3779b97f4a7c15 >> 32) }

// byte codes a byte, which a reader need not know.
func (m *mixer) byte(in byte) byte {
	hashes := [mixOrders - 1]uint64{
		m.last&0xffff | 2<<56, m.last&0xffffff | 3<<56, m.last&0xffffffffff | 5<<56, uint64(m.word)<<8 | m.last&0xff | 7<<56,
	}
	before := int(m.last & 0xff)
	expect, kind, set := m.copy.expected(m.out)
	code := uint(1) // the bits of the byte so far, behind a one
	for half := range 2 {
		p0 := &m.first[before*17]
		if half == 1 {
			p0 = &m.first[before*17+int(code&15)+1]
		}
		var p [mixOrders - 1]*[mixSlots]uint8
		for i := range p {
			p[i] = m.slot(i, mixHash(hashes[i]+uint64(half)*uint64(code)<<40))
		}
		p1, p2, p3, p4 := p[0], p[1], p[2], p[3]
		node := uint(1)
		for bit := 7 - half*4; node < 16; bit-- {
			h0, h1, h2, h3, h4 := p0[node&15], p1[node&15], p2[node&15], p3[node&15], p4[node&15]
			x0 := int64(logitOf[m.chances[0][h0]>>4])
			x1 := int64(logitOf[m.chances[1][h1]>>4])
			x2 := int64(logitOf[m.chances[2][h2]>>4])
			x3 := int64(logitOf[m.chances[3][h3]>>4])
			x4 := int64(logitOf[m.chances[4][h4]>>4])
			x5, want := int64(0), 0
			var copyChance *uint16
			if expect>>((bit+1)&15) == int(code) {
				want = expect >> (bit & 7) & 1
				at := kind
				if kind == mixWrong {
					at += bit
				}
				copyChance = &m.copyChances[at&255]
				x5 = int64(logitOf[*copyChance>>4])
				if want == 0 {
					x5 = -x5
				}
			} else {
				expect, set = 0, 0
			}
			w := &m.weights[(int(code)|set)&1023]
			logit := min(max(int((x0*int64(w[0])+x1*int64(w[1])+x2*int64(w[2])+x3*int64(w[3])+x4*int64(w[4])+x5*int64(w[5]))>>16), -mostLogit), mostLogit) + 2048
			chance := int(chanceOf[logit&4095])
			step := logit * (mixRefined - 1)
			share := step & 4095
			r := (*[2]uint16)(m.refined[(before<<8|int(code&255))*mixRefined+step>>12:])
			mean := (chance + (int(r[0])*(4096-share)+int(r[1])*share)>>12) >> 1
			y := m.c.chance(uint32(65536-min(max(mean, 32), 65536-32)), int(in>>(bit&7)&1))

			full := y<<16 - y
			r[share>>11] += uint16((full - int(r[share>>11])) >> 6)
			wrong := int64(full-chance) * 5 >> 3
			w[0] += int32((x0*wrong + 0x8000) >> 16)
			w[1] += int32((x1*wrong + 0x8000) >> 16)
			w[2] += int32((x2*wrong + 0x8000) >> 16)
			w[3] += int32((x3*wrong + 0x8000) >> 16)
			w[4] += int32((x4*wrong + 0x8000) >> 16)
			w[5] += int32((x5*wrong + 0x8000) >> 16)
			m.chances[0][h0] = learned(m.chances[0][h0], y)
			m.chances[1][h1] = learned(m.chances[1][h1], y)
			m.chances[2][h2] = learned(m.chances[2][h2], y)
			m.chances[3][h3] = learned(m.chances[3][h3], y)
			m.chances[4][h4] = learned(m.chances[4][h4], y)
			next := &nextHistory[y&1]
			p0[node&15], p1[node&15], p2[node&15], p3[node&15], p4[node&15] = next[h0], next[h1], next[h2], next[h3], next[h4]
			if copyChance != nil {
				*copyChance = learned(*copyChance, b2i(want == y))
			}
			code = code<<1 | uint(y&1)
			node = node<<1 | uint(y&1)
		}
	}
	return byte(code)
}

// push takes a byte in.
func (m *mixer) push(b byte) {
	m.copy.push(m.out, b)
	m.out = append(m.out, b)
	m.last = m.last<<8 | uint64(b)
	if b|0x20 >= 'a' && b|0x20 <= 'z' || b >= 0x80 {
		m.word = (m.word + uint32(b|0x20)) * 0x2f0b4a27
	} else {
		m.word = 0
	}
	m.copy.look(m.out, m.last)
}

// code codes bytes, of which a reader knows the number. Stop, when not nil, is asked now
// and then whether to go on.
func (m *mixer) code(in []byte, size int, stop func() error) error {
	for at := range size {
		if at%mixAsks == 0 && stop != nil {
			if err := stop(); err != nil {
				return err
			}
		}
		if m.c.spent() {
			return errForm
		}
		var b byte
		if m.c.writing {
			b = in[at]
		}
		if m.copy.length >= mixSure {
			e := m.copy.next(m.out)
			if m.copy.goesOn(m.c, m.last, e, b == e) {
				m.push(e)
				continue
			}
		}
		m.push(m.byte(b))
	}
	return nil
}

// mixed returns bytes compressed.
func mixed(raw []byte, stop func() error) ([]byte, error) {
	m := newMixer(newWriter(), len(raw))
	err := m.code(raw, len(raw), stop)
	return m.c.finish(), err
}

// unmixed is the inverse.
func unmixed(b []byte, size int, stop func() error) ([]byte, error) {
	m := newMixer(newReader(b), size)
	err := m.code(nil, size, stop)
	return m.out, err
}
