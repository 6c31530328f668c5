package pack

import (
	"context"
	"io"

	"github.com/lineage-store/lineage/internal/pack/layout"
)

// Spare returns the size of the lookup tables, or 0 if they are so small a share of the file that it is not
// worth while to write it again without them.
func (p *File) Spare() int64 {
	const least = 64
	if !p.Listed() {
		return 0
	}
	n := p.foot.ParityAt(p.size) - p.foot.LookupAt()
	if n < p.size/least {
		return 0
	}
	return n
}

// Unlist writes the pack without its lookup tables, and returns the size of that file. It does not sync. A damaged
// pack is not copied, because the copy would state the damage as right.
func (p *File) Unlist(ctx context.Context, to io.WriterAt) (int64, error) {
	if err := p.CheckParts(ctx); err != nil {
		return 0, err
	}
	parity, end := make(layout.Parity, layout.MaxParity), p.foot.LookupAt()
	b := make([]byte, min(end, 256<<10))
	for at := int64(0); at < end; at += int64(len(b)) {
		b = b[:min(end-at, int64(len(b)))]
		if err := p.read(b, at); err != nil {
			return 0, err
		}
		parity.Add(b, at)
		if _, err := to.WriteAt(b, at); err != nil {
			return 0, err
		}
	}
	foot := p.foot
	foot.DirectorySize = 0
	last := endOf(foot, parity, end)
	_, err := to.WriteAt(last, end)
	return end + int64(len(last)), err
}
