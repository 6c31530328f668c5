package pack

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/lineage/backend"
)

// source is the file of a pack. It restores one damaged block. It is safe for concurrent use.
type source struct {
	name string
	src  io.ReaderAt
	size int64 // as written
	cut  int64 // missing bytes at the end, of the second footer
	foot footer
	// unfinished is why the footers cannot be used, in a pack that is only to be salvaged.
	unfinished error

	mending sync.Once
	differs parity       // see difference
	unknown error        // error of computing it
	damaged atomic.Int64 // offset of the damaged block plus 1; 0 if unknown
}

// difference returns the difference between the damaged block and the original, or nil if no
// block is damaged or the difference is unknown. It reads the file once.
func (p *source) difference() parity {
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
func (p *source) restore(b []byte, at int64, right func([]byte) bool) bool {
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

// findFooter finds a footer in the last bytes of a file. If the second one is damaged or cut short, the
// first one is used.
func (p *source) findFooter(tail []byte, size int64) (err error) {
	cutBy := func(n int, foot footer) {
		p.foot, p.cut, p.size = foot, int64(n), size+int64(n)
	}
	foot, err := decodeFooter(tail[footerSize:])
	if err == nil {
		if cutBy(footerSize, foot); bytes.Equal(tail[:footerSize], tail[footerSize:]) || !p.parityMatches() {
			cutBy(0, foot)
		}
		return nil
	}
	for n := range footerSize {
		if foot, ok := decodeFooter(tail[n:][:footerSize]); ok == nil {
			cutBy(n, foot)
			return nil
		}
	}
	return err
}

// parityMatches reports whether the parity is where the size of the file says.
func (p *source) parityMatches() bool {
	if !p.foot.fits(p.size) {
		return false
	}
	_, err := p.checked(part{offset: p.foot.parityAt(p.size), size: int64(p.foot.parity) + 4})
	return err == nil
}

func (p *source) corrupt(offset int64, what string) error {
	return &backend.CorruptError{File: p.name, Offset: offset, What: what}
}

func (p *source) read(b []byte, at int64) error {
	n, err := p.src.ReadAt(b, at)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return p.corrupt(at+int64(n), "the file ends too early")
	case errors.Is(err, fs.ErrClosed):
		return fmt.Errorf("read %s: %w", p.name, backend.ErrClosed)
	}
	return fmt.Errorf("read %s: %w", p.name, err)
}

// part returns the content of a part.
func (p *source) part(at part) ([]byte, error) {
	if at.size == 0 {
		return nil, nil
	}
	if at.size < 4 {
		return nil, p.corrupt(at.offset, errForm.Error())
	}
	b, err := p.checked(at)
	if errors.Is(err, errSum) {
		if !p.restore(b, at.offset, sumMatches) {
			return nil, p.corrupt(at.offset, "checksum of a part does not match")
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return b[:at.size-4], nil
}

var errSum = errors.New("checksum does not match")

// checked returns a part with its checksum, and errSum if the checksum is wrong.
func (p *source) checked(at part) ([]byte, error) {
	b := make([]byte, at.size)
	if err := p.read(b, at.offset); err != nil {
		return nil, err
	}
	if !sumMatches(b) {
		return b, errSum
	}
	return b, nil
}
