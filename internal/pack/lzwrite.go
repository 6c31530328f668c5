package pack

import (
	"encoding/binary"
	"math"
)

// lzWriter finds the cheapest way to say bytes, as the models stand.
type lzWriter struct {
	buf    []byte // the dictionary and what is being packed
	finder lzFinder
}

// newLZWriter returns a writer after a dictionary.
func newLZWriter(dict []byte) *lzWriter {
	w := &lzWriter{buf: append(make([]byte, 0, len(dict)+1<<16), dict...)}
	w.finder.reset(len(dict))
	for i := range dict {
		w.finder.insert(w.buf, i)
	}
	return w
}

// pack packs bytes and leaves the writer as it was. Stop, when not nil, is asked at each
// window whether to go on.
func (w *lzWriter) pack(m *lzModel, raw []byte, stop func() error) ([]byte, error) {
	start := len(w.buf)
	w.buf = append(w.buf, raw...)
	p := lzParse{w: w, m: m, c: newWriter()}
	err := p.run(start, stop)
	w.finder.forget(w.buf, start)
	w.buf = w.buf[:start]
	return p.c.finish(), err
}

const (
	lzShortBits  = 17
	lzShortest   = 4 // bytes that the short chains agree in
	lzLongBits   = 17
	lzLong       = 8   // bytes that the long chains agree in
	lzShortTries = 24  // how many places of a short chain are looked at
	lzLongTries  = 48  // and of a long one
	lzNice       = 180 // a copy of this length is taken without a look at others
)

// lzFinder finds earlier places of the same bytes: chains of places whose next 4,
// and whose next 8, are the same.
type lzFinder struct {
	short, long             []int32 // the latest place for a hash, from 1
	beforeShort, beforeLong []int32 // the place before in its chain
}

func (f *lzFinder) reset(n int) {
	f.short = make([]int32, 1<<lzShortBits)
	f.long = make([]int32, 1<<lzLongBits)
	f.beforeShort = make([]int32, 0, n)
	f.beforeLong = make([]int32, 0, n)
}

func hashShort(b []byte) uint32 {
	return binary.LittleEndian.Uint32(b) * 0x9e3779b1 >> (32 - lzShortBits)
}

func hashLong(b []byte) uint32 {
	return uint32(binary.LittleEndian.Uint64(b) * 0x9e3779b97f4a7c15 >> (64 - lzLongBits))
}

// insert adds the place at, the next after those that were.
func (f *lzFinder) insert(b []byte, at int) {
	var s, l int32
	if at+lzShortest <= len(b) {
		h := hashShort(b[at:])
		s, f.short[h] = f.short[h], int32(at+1)
	}
	if at+lzLong <= len(b) {
		h := hashLong(b[at:])
		l, f.long[h] = f.long[h], int32(at+1)
	}
	f.beforeShort = append(f.beforeShort, s)
	f.beforeLong = append(f.beforeLong, l)
}

// forget takes out the places from start on, the latest first.
func (f *lzFinder) forget(b []byte, start int) {
	for at := len(f.beforeShort) - 1; at >= start; at-- {
		if at+lzShortest <= len(b) {
			f.short[hashShort(b[at:])] = f.beforeShort[at]
		}
		if at+lzLong <= len(b) {
			f.long[hashLong(b[at:])] = f.beforeLong[at]
		}
	}
	f.beforeShort, f.beforeLong = f.beforeShort[:start], f.beforeLong[:start]
}

// lzMatch is a copy that is possible: every shorter one is too.
type lzMatch struct {
	length   int
	distance uint32
}

// find returns the copies possible at a place, which is not inserted yet: longer
// ones, from further back.
func (f *lzFinder) find(b []byte, at int, out []lzMatch) []lzMatch {
	out = out[:0]
	most := min(len(b)-at, lzMost)
	if most < lzShortest {
		return out
	}
	best := lzShortest - 1
	look := func(chain []int32, from int32, tries int) {
		for ; from > 0 && tries > 0; from, tries = chain[from-1], tries-1 {
			p := int(from - 1)
			if b[p+best] != b[at+best] {
				continue
			}
			n := 0
			for n < most && b[p+n] == b[at+n] {
				n++
			}
			if n > best {
				best = n
				out = append(out, lzMatch{n, uint32(at - p - 1)})
				if n == most {
					return
				}
			}
		}
	}
	if best < most {
		look(f.beforeShort, f.short[hashShort(b[at:])], lzShortTries)
	}
	if best < most && at+lzLong <= len(b) {
		best = max(best, lzLong-1)
		look(f.beforeLong, f.long[hashLong(b[at:])], lzLongTries)
	}
	return out
}

func matchLength(b []byte, p, at, most int) int {
	n := 0
	for n < most && b[p+n] == b[at+n] {
		n++
	}
	return n
}

// Prices are in 1/64 of a bit.
const priceUnit = 64

var lzPrices = func() (t [1 << probBits]uint32) {
	for i := range t {
		t[i] = uint32(-math.Log2(math.Max(float64(i), 0.5)/(1<<probBits))*priceUnit + 0.5)
	}
	return t
}()

func price(p *prob, bit int) uint32 {
	z := min(max(p.zero(), 1), 1<<probBits-1)
	if bit == 0 {
		return lzPrices[z]
	}
	return lzPrices[1<<probBits-z]
}

func priceTree(p []prob, n, v int) (sum uint32) {
	at := 1
	for n--; n >= 0; n-- {
		bit := v >> n & 1
		sum += price(&p[at], bit)
		at = at<<1 | bit
	}
	return sum
}

func priceReverse(p []prob, n int, v uint32) (sum uint32) {
	at := 1
	for i := range n {
		bit := int(v >> i & 1)
		sum += price(&p[at], bit)
		at = at<<1 | bit
	}
	return sum
}

// lzParse packs one stretch of bytes.
type lzParse struct {
	w     *lzWriter
	m     *lzModel
	c     *coder
	state int
	reps  [4]uint32

	nodes    []lzNode
	lengths  [2][lzMost + 1]uint32 // prices of copies and repeats
	slots    [lzLenBits][64]uint32
	aligns   [1 << lzAlign]uint32
	specials [128]uint32
	matches  []lzMatch
	steps    []int32
}

// lzNode is the cheapest way so far to have said everything up to a place.
type lzNode struct {
	price uint32
	from  int32 // how many bytes before
	how   int32 // a literal, a single byte again, 0 to 3 repeats, or a copy of the distance + 4
	state int8
	reps  [4]uint32
}

const (
	lzWindow  = 4096
	lzLiteral = -1
	lzShort   = -2
)

func (p *lzParse) run(at int, stop func() error) error {
	end := len(p.w.buf)
	p.nodes = make([]lzNode, lzWindow+lzMost+2)
	for at < end {
		if stop != nil {
			if err := stop(); err != nil {
				return err
			}
		}
		at = p.window(at, min(end-at, lzWindow))
	}
	return nil
}

func (p *lzParse) prices() {
	for k, l := range []*lzLength{&p.m.matchLen, &p.m.repLen} {
		for n := lzLeast; n <= lzMost; n++ {
			v := n - lzLeast
			switch {
			case v < 8:
				p.lengths[k][n] = price(&l.choice, 0) + priceTree(l.low[:], 3, v)
			case v < 16:
				p.lengths[k][n] = price(&l.choice, 1) + price(&l.choice2, 0) + priceTree(l.mid[:], 3, v-8)
			default:
				p.lengths[k][n] = price(&l.choice, 1) + price(&l.choice2, 1) + priceTree(l.high[:], 8, v-16)
			}
		}
	}
	for k := range p.slots {
		for s := range p.slots[k] {
			p.slots[k][s] = priceTree(p.m.slot[k][:], 6, s)
			if s >= lzFirstRaw {
				p.slots[k][s] += uint32(s>>1-1-lzAlign) * priceUnit
			}
		}
	}
	for v := range p.aligns {
		p.aligns[v] = priceReverse(p.m.align[:], lzAlign, uint32(v))
	}
	for d := uint32(4); d < 128; d++ {
		s := lzSlot(d)
		n := s>>1 - 1
		out := uint32(2|s&1) << n
		p.specials[d] = priceReverse(p.m.special[out-uint32(s):], n, d-out)
	}
}

func (p *lzParse) distancePrice(n int, d uint32) uint32 {
	s := lzSlot(d)
	sum := p.slots[lengthKind(n)][s]
	switch {
	case s < 4:
	case s < lzFirstRaw:
		sum += p.specials[d]
	default:
		sum += p.aligns[d&(1<<lzAlign-1)]
	}
	return sum
}

func (p *lzParse) literalPrice(state int, before, match, b byte) uint32 {
	lit := p.m.literal[lzClass[before]][:]
	if state < 7 {
		return priceTree(lit, 8, int(b))
	}
	d := &p.m.differs[before>>5]
	at, sum := 1, uint32(0)
	for i := 7; i >= 0; i-- {
		want, bit := int(match>>i&1), int(b>>i&1)
		sum += price(&d[want][at], bit)
		at = at<<1 | bit
		if bit != want {
			for i--; i >= 0; i-- {
				bit := int(b >> i & 1)
				sum += price(&lit[at], bit)
				at = at<<1 | bit
			}
			break
		}
	}
	return sum
}

func (p *lzParse) literal(at, state int, rep uint32) (before, match byte) {
	b := p.w.buf
	if at > 0 {
		before = b[at-1]
	}
	if state >= 7 {
		match = b[at-int(rep)-1]
	}
	return before, match
}

// window says up to n bytes from a place and returns where it stopped.
func (p *lzParse) window(start, n int) int {
	p.prices()
	b, m, f := p.w.buf, p.m, &p.w.finder
	nodes := p.nodes
	for i := range nodes[:min(n+lzMost+1, len(nodes))] {
		nodes[i].price = math.MaxUint32
	}
	nodes[0] = lzNode{state: int8(p.state), reps: p.reps}
	end := n // where to stop, from start
	reach := func(to int, sum uint32, from, how int32) {
		if x := &nodes[to]; sum < x.price {
			x.price, x.from, x.how = sum, from, how
		}
	}
	i := 0
	for ; i < end; i++ {
		at := start + i
		if i > 0 {
			settle(nodes, i)
		}
		x := &nodes[i]
		p.matches = f.find(b, at, p.matches)
		f.insert(b, at)
		state := int(x.state)
		noMatch, yes := x.price+price(&m.isMatch[state], 0), x.price+price(&m.isMatch[state], 1)
		before, match := p.literal(at, state, x.reps[0])
		reach(i+1, noMatch+p.literalPrice(state, before, match, b[at]), 1, lzLiteral)
		rep := yes + price(&m.isRep[state], 1)
		most := min(len(b)-at, lzMost)
		longest := 0
		for r, d := range x.reps {
			from := at - int(d) - 1
			if from < 0 || b[from] != b[at] {
				continue
			}
			var which uint32
			switch r {
			case 0:
				which = price(&m.isRep0[state], 0)
				reach(i+1, rep+which+price(&m.isLong[state], 0), 1, lzShort)
				which += price(&m.isLong[state], 1)
			case 1:
				which = price(&m.isRep0[state], 1) + price(&m.isRep1[state], 0)
			default:
				which = price(&m.isRep0[state], 1) + price(&m.isRep1[state], 1) + price(&m.isRep2[state], r-2)
			}
			l := matchLength(b, from, at, most)
			longest = max(longest, l)
			for k := lzLeast; k <= l; k++ {
				reach(i+k, rep+which+p.lengths[1][k], int32(k), int32(r))
			}
		}
		base := yes + price(&m.isRep[state], 0)
		k := lzLeast
		for _, c := range p.matches {
			longest = max(longest, c.length)
			for ; k <= c.length; k++ {
				reach(i+k, base+p.lengths[0][k]+p.distancePrice(k, c.distance), int32(k), int32(c.distance)+4)
			}
		}
		if longest >= lzNice { // good enough: what comes before it is settled with it
			i += longest
			for k := i - longest + 1; k < i; k++ {
				f.insert(b, start+k)
			}
			settle(nodes, i)
			return p.say(start, i)
		}
	}
	settle(nodes, i)
	return p.say(start, i)
}

// settle computes state and distances at a node whose cheapest way is known.
func settle(nodes []lzNode, i int) {
	x := &nodes[i]
	from := &nodes[i-int(x.from)]
	x.reps = from.reps
	state := int(from.state)
	switch r := &x.reps; {
	case x.how == lzLiteral:
		x.state = int8(afterLiteral(state))
	case x.how == lzShort:
		x.state = int8(afterShort(state))
	case x.how < 4:
		x.state = int8(afterRep(state))
		d := r[x.how]
		copy(r[1:x.how+1], r[:x.how])
		r[0] = d
	default:
		x.state = int8(afterMatch(state))
		copy(r[1:], r[:3])
		r[0] = uint32(x.how - 4)
	}
}

// say codes the cheapest way to the i-th node and returns the place there.
func (p *lzParse) say(start, i int) int {
	p.steps = p.steps[:0]
	for at := i; at > 0; at -= int(p.nodes[at].from) {
		p.steps = append(p.steps, int32(at))
	}
	c, m, b := p.c, p.m, p.w.buf
	for k := len(p.steps) - 1; k >= 0; k-- {
		x := &p.nodes[p.steps[k]]
		at := start + int(p.steps[k]-x.from)
		from := &p.nodes[p.steps[k]-x.from]
		state := int(from.state)
		c.bit(&m.isMatch[state], b2i(x.how != lzLiteral))
		if x.how == lzLiteral {
			before, match := p.literal(at, state, from.reps[0])
			c.lit(m, state, before, match, b[at])
			continue
		}
		c.bit(&m.isRep[state], b2i(x.how < 4))
		switch {
		case x.how >= 4:
			c.length(&m.matchLen, int(x.from))
			c.distance(m, int(x.from), uint32(x.how-4))
			continue
		case x.how == lzShort:
			c.bit(&m.isRep0[state], 0)
			c.bit(&m.isLong[state], 0)
			continue
		}
		if c.bit(&m.isRep0[state], b2i(x.how > 0)); x.how == 0 {
			c.bit(&m.isLong[state], 1)
		} else if c.bit(&m.isRep1[state], b2i(x.how > 1)); x.how > 1 {
			c.bit(&m.isRep2[state], b2i(x.how > 2))
		}
		c.length(&m.repLen, int(x.from))
	}
	p.state, p.reps = int(p.nodes[i].state), p.nodes[i].reps
	return start + i
}
