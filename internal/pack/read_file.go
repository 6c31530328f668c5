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

	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/lineage/backend"
)

// mendedFile is the file of a pack. It restores one damaged block. It is safe for concurrent use.
type mendedFile struct {
	name string
	src  io.ReaderAt
	size int64 // as written
	cut  int64 // missing bytes at the end, of the second footer
	foot layout.Footer
	// unfinished is why the footers cannot be used, in a pack that is only to be salvaged.
	unfinished error

	mending sync.Once
	differs layout.Parity // see difference
	unknown error         // error of computing it
	damaged atomic.Int64  // offset of the damaged block plus 1; 0 if unknown
}

// difference returns the difference between the damaged block and the original, or nil if no
// block is damaged or the difference is unknown. It reads the file once.
func (p *mendedFile) difference() layout.Parity {
	if p.unfinished != nil {
		return nil
	}
	p.mending.Do(func() {
		end := p.foot.ParityAt(p.size)
		d := make(layout.Parity, p.foot.ParitySize)
		b := make([]byte, min(end, 256<<10))
		for at := int64(0); at < end; at += int64(len(b)) {
			b = b[:min(end-at, int64(len(b)))]
			if p.unknown = p.read(b, at); p.unknown != nil {
				return
			}
			d.Add(b, at)
		}
		var spare []byte
		if spare, p.unknown = p.checked(layout.Range{Offset: end, Size: int64(p.foot.ParitySize) + 4}); p.unknown != nil {
			return
		}
		if d.Add(spare[:p.foot.ParitySize], 0); !bytes.Equal(d, make([]byte, len(d))) {
			p.differs = d
		}
	})
	return p.differs
}

// restore repairs the bytes at an offset so that matches returns true. If it cannot, it leaves
// them unchanged and returns false.
func (p *mendedFile) restore(b []byte, at int64, matches func([]byte) bool) bool {
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
		if matches(b) {
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
func (p *mendedFile) findFooter(tail []byte, size int64) (err error) {
	cutBy := func(n int, foot layout.Footer) {
		p.foot, p.cut, p.size = foot, int64(n), size+int64(n)
	}
	foot, err := layout.DecodeFooter(tail[layout.FooterSize:])
	if err == nil {
		if cutBy(layout.FooterSize, foot); bytes.Equal(tail[:layout.FooterSize], tail[layout.FooterSize:]) || !p.parityMatches() {
			cutBy(0, foot)
		}
		return nil
	}
	for n := range layout.FooterSize {
		if foot, ok := layout.DecodeFooter(tail[n:][:layout.FooterSize]); ok == nil {
			cutBy(n, foot)
			return nil
		}
	}
	return err
}

// parityMatches reports whether the parity is where the size of the file says.
func (p *mendedFile) parityMatches() bool {
	if !p.foot.Fits(p.size) {
		return false
	}
	_, err := p.checked(layout.Range{Offset: p.foot.ParityAt(p.size), Size: int64(p.foot.ParitySize) + 4})
	return err == nil
}

func (p *mendedFile) corrupt(offset int64, what string) error {
	return &backend.CorruptError{File: p.name, Offset: offset, What: what}
}

func (p *mendedFile) read(b []byte, at int64) error {
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
func (p *mendedFile) part(at layout.Range) ([]byte, error) {
	if at.Size == 0 {
		return nil, nil
	}
	if at.Size < 4 {
		return nil, p.corrupt(at.Offset, layout.ErrForm.Error())
	}
	b, err := p.checked(at)
	if errors.Is(err, errSum) {
		if !p.restore(b, at.Offset, layout.SumMatches) {
			return nil, p.corrupt(at.Offset, "checksum of a part does not match")
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return b[:at.Size-4], nil
}

var errSum = errors.New("checksum does not match")

// checked returns a part with its checksum, and errSum if the checksum is wrong.
func (p *mendedFile) checked(at layout.Range) ([]byte, error) {
	b := make([]byte, at.Size)
	if err := p.read(b, at.Offset); err != nil {
		return nil, err
	}
	if !layout.SumMatches(b) {
		return b, errSum
	}
	return b, nil
}
