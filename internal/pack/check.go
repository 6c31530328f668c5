package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/pack/columns"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/structure"
)

// CheckSums reads all lookup tables and checks their checksums and form.
func (p *File) CheckSums() error {
	d, err := p.loadDirectory()
	if err != nil {
		return p.lookupFault(err)
	}
	for _, t := range []*lookup.Buckets{&d.Content, &d.Runs} {
		for i := range t.Count() {
			if err := p.fingers(t, uint64(i), func(lookup.Finger) bool { return true }); err != nil {
				return p.lookupFault(err)
			}
		}
	}
	for i := range d.ListCount() {
		at := d.List(i)
		b, err := p.part(at)
		if err != nil {
			return p.lookupFault(err)
		}
		if _, err := d.ReadList(b, i, p.Header); err != nil {
			return p.lookupFault(p.corrupt(at.Offset, err.Error()))
		}
	}
	return nil
}

// CheckParts reads every part of the pack, including lookup tables, and returns an
// error for the first with a wrong checksum, or the result of Damage.
func (p *File) CheckParts(ctx context.Context) error {
	rows, err := p.table()
	if err != nil {
		return err
	}
	for i := range rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := &rows[i]
		for _, at := range r.Parts {
			if _, err := p.part(at); err != nil {
				return err
			}
		}
	}
	if err := p.checkHeads(rows); err != nil {
		return err
	}
	if err := p.CheckSums(); err != nil && !errors.Is(err, ErrUnlisted) {
		return err
	}
	return p.Damage()
}

// Check compares the lookup tables of a pack with its commits, which are added in
// order.
type Check struct {
	file   *File
	rows   []layout.ChapterRow
	row    int
	next   uint64
	lookup lookup.Builder
}

// NewCheck starts a check with the first commit.
func (p *File) NewCheck() (*Check, error) {
	rows, err := p.table()
	return &Check{file: p, rows: rows, next: p.FirstCommit}, err
}

// Last is the last segment in the pack.
func (c *Check) Last() uint32 { return c.file.Last }

// Add adds the next commit, with all of its records.
func (c *Check) Add(number uint64, records []structure.Record) error {
	for ; c.row+1 < len(c.rows) && c.rows[c.row+1].Commit <= number; c.row++ {
		if err := c.chapter(); err != nil {
			return err
		}
	}
	at, err := c.file.commit(number)
	for piece := 0; err == nil && at.x.Open; piece++ {
		n := min(len(at.x.Records), len(records))
		c.lookup.Add(number, piece, records[:n], false)
		records = records[n:]
		if at, err = c.file.after(at); err == nil && !at.x.Open {
			c.lookup.Add(number, piece+1, records, false)
			c.next = number + 1
			return nil
		}
	}
	if err != nil {
		return err
	}
	c.lookup.Add(number, 0, records, at.x.Verbatim)
	c.next = number + 1
	return nil
}

// chapter records the number of objects in the current chapter.
func (c *Check) chapter() error {
	x, err := c.file.chapter(c.row)
	if err == nil {
		c.lookup.Chapter(len(columns.Objects(x.commits)))
	}
	return err
}

// Done returns an error if the tables are wrong. It checks them only if all
// commits were added.
func (c *Check) Done() error {
	p := c.file
	if c.next != p.LastCommit+1 {
		return nil
	}
	for ; c.row < len(c.rows); c.row++ {
		if err := c.chapter(); err != nil {
			return err
		}
	}
	parts, index := c.lookup.Encode(p.FirstCommit)
	from, to := p.foot.LookupAt(), p.foot.ParityAt(p.size)
	stored := make([]byte, to-from)
	if err := p.read(stored, from); err != nil {
		return err
	}
	want := append(parts, index...)
	matches := func(b []byte) bool { return bytes.Equal(b, want) }
	if !matches(stored) && !p.restore(stored, from, matches) {
		at := 0
		for at < min(len(stored), len(want)) && stored[at] == want[at] {
			at++
		}
		return p.lookupFault(p.corrupt(from+int64(at), "the lookup tables differ from the commits"))
	}
	return nil
}

// Damage returns an error if the file is damaged, even if everything can be read. It reads the
// file once.
func (p *File) Damage() error {
	const mends = "; nothing is lost as long as this is the only damage; 'lineage pack' rewrites the file"
	if p.cut > 0 {
		return p.corrupt(p.size-p.cut, fmt.Sprintf("the last %d bytes are missing", p.cut)+mends)
	}
	tail := make([]byte, layout.TailSize)
	if err := p.read(tail, p.size-layout.TailSize); err != nil {
		return err
	}
	differs := p.difference()
	switch {
	case !bytes.Equal(tail[:layout.FooterSize], tail[layout.FooterSize:]):
		return p.corrupt(p.size-layout.TailSize, "one of two footers is damaged"+mends)
	case errors.Is(p.unknown, errSum):
		return p.corrupt(p.foot.ParityAt(p.size), "the parity is damaged"+mends)
	case p.unknown != nil:
		return p.unknown
	case differs != nil:
		return p.corrupt(max(p.damaged.Load()-1, 0), "a block is damaged"+mends)
	}
	return nil
}

// checkHeads compares the heads of all chapters with the table.
func (p *File) checkHeads(rows []layout.ChapterRow) error {
	for i := range rows {
		r := &rows[i]
		stored, want := make([]byte, r.Head), r.EncodeHead(p.Header)
		if err := p.read(stored, r.Offset); err != nil {
			return err
		}
		matches := func(b []byte) bool { return bytes.Equal(b, want) }
		if !matches(stored) && !p.restore(stored, r.Offset, matches) {
			return p.corrupt(r.Offset, "the head of a chapter is damaged")
		}
	}
	return nil
}
