package pack

import "math/bits"

// prob is the chance that a bit is zero, in 1/65536: the mean of an estimate that
// learns fast and one that learns slowly.
type prob struct{ fast, slow uint16 }

const (
	probStart = 1 << 15
	fastRate  = 4
	slowRate  = 7
	probBits  = 12 // of the mean that is used
	topValue  = 1 << 24
)

func (p *prob) zero() uint32 { return (uint32(p.fast) + uint32(p.slow)) >> (17 - probBits) }

func (p *prob) learn(bit int) {
	if bit == 0 {
		p.fast += (0xffff - p.fast) >> fastRate
		p.slow += (0xffff - p.slow) >> slowRate
	} else {
		p.fast -= p.fast >> fastRate
		p.slow -= p.slow >> slowRate
	}
}

// coder is a binary range coder in either direction: what writes and what reads a
// form is the same code, so the two cannot differ. A reader is handed zeros and
// gets what the writer was handed.
type coder struct {
	writing bool
	rng     uint32

	// Of a writer:
	low     uint64
	pending byte // the last byte, which a carry may still change
	carries int  // how many bytes a carry would change, with the pending one
	out     []byte

	// Of a reader:
	code  uint32
	in    []byte
	short int // bytes that were asked for behind the end
}

func newWriter() *coder { return &coder{writing: true, rng: 1<<32 - 1, carries: 1} }

func newReader(b []byte) *coder {
	c := &coder{rng: 1<<32 - 1, in: b}
	for range 4 {
		c.code = c.code<<8 | uint32(c.take())
	}
	return c
}

func (c *coder) take() byte {
	if len(c.in) == 0 {
		c.short++
		return 0
	}
	b := c.in[0]
	c.in = c.in[1:]
	return b
}

// bit codes a bit whose chance is learned.
func (c *coder) bit(p *prob, bit int) int {
	bit = c.split((c.rng>>probBits)*min(max(p.zero(), 1), 1<<probBits-1), bit)
	p.learn(bit)
	return bit
}

// split codes a bit whose part of the range, if it is zero, is below bound.
func (c *coder) split(bound uint32, bit int) int {
	if c.writing {
		if bit == 0 {
			c.rng = bound
		} else {
			c.low += uint64(bound)
			c.rng -= bound
		}
	} else {
		if c.code < bound {
			c.rng, bit = bound, 0
		} else {
			c.code -= bound
			c.rng -= bound
			bit = 1
		}
	}
	c.normalize()
	return bit
}

// get is bit for a reader.
func (c *coder) get(p *prob) int {
	bound := (c.rng >> probBits) * min(max(p.zero(), 1), 1<<probBits-1)
	if c.code < bound {
		c.rng = bound
		p.fast += (0xffff - p.fast) >> fastRate
		p.slow += (0xffff - p.slow) >> slowRate
		for c.rng < topValue {
			c.rng <<= 8
			c.code = c.code<<8 | uint32(c.take())
		}
		return 0
	}
	c.code -= bound
	c.rng -= bound
	p.fast -= p.fast >> fastRate
	p.slow -= p.slow >> slowRate
	for c.rng < topValue {
		c.rng <<= 8
		c.code = c.code<<8 | uint32(c.take())
	}
	return 1
}

// getByte is tree for a reader and eight bits.
func (c *coder) getByte(p *[256]prob) byte {
	rng, code, in := c.rng, c.code, c.in
	at := uint32(1)
	for at < 256 {
		q := &p[at&255]
		fast, slow := uint32(q.fast), uint32(q.slow)
		bound := (rng >> probBits) * min(max((fast+slow)>>(17-probBits), 1), 1<<probBits-1)
		if code < bound {
			rng = bound
			q.fast, q.slow = uint16(fast+(0xffff-fast)>>fastRate), uint16(slow+(0xffff-slow)>>slowRate)
			at <<= 1
		} else {
			code -= bound
			rng -= bound
			q.fast, q.slow = uint16(fast-fast>>fastRate), uint16(slow-slow>>slowRate)
			at = at<<1 | 1
		}
		for rng < topValue {
			rng <<= 8
			code <<= 8
			if len(in) > 0 {
				code |= uint32(in[0])
				in = in[1:]
			} else {
				c.short++
			}
		}
	}
	c.rng, c.code, c.in = rng, code, in
	return byte(at)
}

// raw codes the lowest n bits of a number as they are.
func (c *coder) raw(v uint64, n int) uint64 {
	var out uint64
	for n--; n >= 0; n-- {
		c.rng >>= 1
		bit := v >> n & 1
		if c.writing {
			if bit == 1 {
				c.low += uint64(c.rng)
			}
		} else if bit = 0; c.code >= c.rng {
			c.code -= c.rng
			bit = 1
		}
		out = out<<1 | bit
		c.normalize()
	}
	return out
}

func (c *coder) normalize() {
	for c.rng < topValue {
		c.rng <<= 8
		if c.writing {
			c.shift()
		} else {
			c.code = c.code<<8 | uint32(c.take())
		}
	}
}

func (c *coder) shift() {
	if c.low < 0xff000000 || c.low >= 1<<32 {
		carry := byte(c.low >> 32)
		c.out = append(c.out, c.pending+carry)
		for ; c.carries > 1; c.carries-- {
			c.out = append(c.out, 0xff+carry)
		}
		c.carries, c.pending = 0, byte(c.low>>24)
	}
	c.carries++
	c.low = c.low & 0x00ffffff << 8
}

// mostShort is how many zeros are left out at the end.
const mostShort = 8

// finish returns what was written.
func (c *coder) finish() []byte {
	for range 5 {
		c.shift()
	}
	out := c.out[1:]                                                         // the first is what was pending at the start: zero
	for n := 0; n < mostShort && len(out) > 0 && out[len(out)-1] == 0; n++ { // a reader takes zeros from behind the end
		out = out[:len(out)-1]
	}
	return out
}

// spent reports whether a reader was asked for more than a writer can have left
// out at the end, and so that the bytes are not what one wrote.
func (c *coder) spent() bool { return !c.writing && c.short > 2*mostShort }

// tree codes a symbol of so many bits with a probability for each prefix.
func (c *coder) tree(p []prob, n, v int) int {
	at := 1
	for n--; n >= 0; n-- {
		at = at<<1 | c.bit(&p[at], v>>n&1)
	}
	return at &^ (1 << bits.Len(uint(len(p)-1)))
}

// number is the model of a field that holds numbers: of how many bits a number
// has, given how many the one before had, and of the two below its highest.
type number struct {
	length [3][128]prob
	top    [40][4]prob
	last   uint8
}

func (n *number) init() {
	start := prob{probStart, probStart}
	for i := range n.length {
		for k := range n.length[i] {
			n.length[i][k] = start
		}
	}
	for i := range n.top {
		for k := range n.top[i] {
			n.top[i][k] = start
		}
	}
}

func (c *coder) number(n *number, v uint64) uint64 {
	size := c.tree(n.length[n.last][:], 7, bits.Len64(v))
	n.last = uint8(min(size, 2))
	if size <= 1 {
		return uint64(size)
	}
	size = min(size, 64)
	v = v &^ (1 << (size - 1))
	out, left := uint64(1), size-1
	at := 1
	for ; left > 0 && left > size-3; left-- {
		bit := int(v >> (left - 1) & 1)
		if size < len(n.top) {
			bit = c.bit(&n.top[size][at], bit)
			at = at<<1 | bit
		} else {
			bit = int(c.raw(uint64(bit), 1))
		}
		out = out<<1 | uint64(bit)
	}
	return out<<left | c.raw(v&(1<<left-1), left)
}

func zigzag(v int64) uint64   { return uint64(v)<<1 ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// chance codes a bit of which the chance to be zero is given, in 1/65536.
func (c *coder) chance(zero uint32, bit int) int {
	return c.split(uint32(uint64(c.rng)*uint64(zero)>>16), bit)
}
