package pack

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
)

// A pack ends with the parity of all bytes before it: the exclusive or of its blocks, which are
// as long as the parity. It restores one damaged block: the exclusive or of all blocks and the
// parity is the difference between the damaged block and the original. The checksum of a part
// shows which block is damaged.
const (
	minParity = 64
	maxParity = 16 << 10
	// parityShare is the least number of bytes per byte of parity, between these sizes.
	parityShare = 256
)

// paritySize returns the size of the parity of n bytes, a power of two.
func paritySize(n int64) int {
	size := minParity
	for size < maxParity && 2*int64(size)*parityShare <= n {
		size *= 2
	}
	return size
}

// parity is one block. Its length is a power of two.
type parity []byte

// add adds the bytes at an offset of the file.
func (p parity) add(b []byte, at int64) {
	for len(b) > 0 {
		into := p[at&int64(len(p)-1):]
		n := subtle.XORBytes(into, into[:min(len(into), len(b))], b)
		b, at = b[n:], at+int64(n)
	}
}

// fold returns the parity for a smaller block size.
func (p parity) fold(size int) parity {
	folded := make(parity, size)
	folded.add(p, 0)
	return folded
}

// difference returns the difference between the damaged block and the original, or nil if no
// block is damaged or the difference is unknown. It reads the file once.
func (p *File) difference() parity {
	if p.unfinished != nil {
		return nil
	}
	p.mending.Do(func() {
		end := p.foot.parityAt(p.size)
		d := make(parity, p.foot.parity)
		b := make([]byte, min(end, 256<<10))
		for at := int64(0); at < end; at += int64(len(b)) {
			b = b[:min(end-at, int64(len(b)))]
			if p.unknown = p.read(b, at); p.unknown != nil {
				return
			}
			d.add(b, at)
		}
		var spare []byte
		if spare, p.unknown = p.checked(part{end, int64(p.foot.parity) + 4}); p.unknown != nil {
			return
		}
		if d.add(spare[:p.foot.parity], 0); !bytes.Equal(d, make([]byte, len(d))) {
			p.differs = d
		}
	})
	return p.differs
}

// restore repairs the bytes at an offset so that right returns true. If it cannot, it leaves
// them unchanged and returns false.
func (p *File) restore(b []byte, at int64, right func([]byte) bool) bool {
	d := p.difference()
	if d == nil {
		return false
	}
	size, end := int64(len(d)), at+int64(len(b))
	try := func(block int64) bool {
		from, to := max(block, at), min(block+size, end)
		if from >= to {
			return false
		}
		mended := b[from-at : to-at]
		subtle.XORBytes(mended, mended, d[from-block:to-block])
		if right(b) {
			return true
		}
		subtle.XORBytes(mended, mended, d[from-block:to-block])
		return false
	}
	// Only one block can be restored: if it is known, no other is tried.
	if known := p.damaged.Load(); known > 0 {
		return try(known - 1)
	}
	for block := at &^ (size - 1); block < end; block += size {
		if try(block) {
			p.damaged.Store(block + 1)
			return true
		}
	}
	return false
}

// Damage returns an error if the file is damaged, even if everything can be read. It reads the
// file once.
func (p *File) Damage() error {
	const mends = "; nothing is lost as long as this is the only damage; 'lineage pack' rewrites the file"
	if p.cut > 0 {
		return p.corrupt(p.size-p.cut, fmt.Sprintf("the last %d bytes are missing", p.cut)+mends)
	}
	tail := make([]byte, tailSize)
	if err := p.read(tail, p.size-tailSize); err != nil {
		return err
	}
	differs := p.difference()
	switch {
	case !bytes.Equal(tail[:footerSize], tail[footerSize:]):
		return p.corrupt(p.size-tailSize, "one of two footers is damaged"+mends)
	case errors.Is(p.unknown, errSum):
		return p.corrupt(p.foot.parityAt(p.size), "the parity is damaged"+mends)
	case p.unknown != nil:
		return p.unknown
	case differs != nil:
		return p.corrupt(max(p.damaged.Load()-1, 0), "a block is damaged"+mends)
	}
	return nil
}
