package pack

import (
	"bytes"
	"context"
	"errors"

	"github.com/lineage-store/lineage/structure"
)

// CheckSums reads everything that finds things and compares it with its checksums
// and form.
func (p *File) CheckSums() error {
	d, err := p.readFinds()
	if err != nil {
		return p.lookupFault(err)
	}
	for _, t := range []*buckets{&d.content, &d.runs} {
		for i := range len(t.offsets) - 1 {
			if err := p.fingers(t, uint64(i), func(finger) bool { return true }); err != nil {
				return p.lookupFault(err)
			}
		}
	}
	for i := range len(d.lists) - 1 {
		at := part{d.lists[i], d.lists[i+1] - d.lists[i]}
		b, err := p.part(at)
		if err != nil {
			return p.lookupFault(err)
		}
		if _, err := readRuns(b, min(runsPerList, int(d.runs.fingers)-i*runsPerList), p.Header); err != nil {
			return p.lookupFault(p.corrupt(at.offset, err.Error()))
		}
	}
	return nil
}

// CheckParts reads every part of the pack, those that find things included, and
// returns the first whose checksum does not match, or what Damage returns.
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
		for _, at := range r.parts {
			if _, err := p.part(at); err != nil {
				return err
			}
		}
	}
	if err := p.CheckSums(); err != nil && !errors.Is(err, ErrUnlisted) {
		return err
	}
	return p.Damage()
}

// Check compares what finds things in a pack with its commits, which are handed to
// it one after the other.
type Check struct {
	file   *File
	rows   []row
	row    int
	next   uint64
	lookup lookup
}

// NewCheck begins a check with the first commit.
func (p *File) NewCheck() (*Check, error) {
	rows, err := p.table()
	return &Check{file: p, rows: rows, next: p.FirstCommit}, err
}

// Last is the last segment that the pack stands for.
func (c *Check) Last() uint32 { return c.file.Last }

// Add adds the next commit, with all of its records.
func (c *Check) Add(number uint64, records []structure.Record) error {
	for ; c.row+1 < len(c.rows) && c.rows[c.row+1].commit <= number; c.row++ {
		if err := c.chapter(); err != nil {
			return err
		}
	}
	at, err := c.file.commit(number)
	for piece := 0; err == nil && at.x.open; piece++ {
		n := min(len(at.x.records), len(records))
		c.lookup.add(number, piece, records[:n], false)
		records = records[n:]
		if at, err = c.file.after(at); err == nil && !at.x.open {
			c.lookup.add(number, piece+1, records, false)
			c.next = number + 1
			return nil
		}
	}
	if err != nil {
		return err
	}
	c.lookup.add(number, 0, records, at.x.verbatim)
	c.next = number + 1
	return nil
}

// chapter notes how many numbers the chapter at hand has.
func (c *Check) chapter() error {
	x, err := c.file.chapter(c.row)
	if err == nil {
		c.lookup.chapter(len(x.objects))
	}
	return err
}

// Done returns what is wrong, if all commits were added.
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
	parts, index := c.lookup.encode(p.FirstCommit)
	from, to := p.foot.findsAt(), p.foot.parityAt(p.size)
	is := make([]byte, to-from)
	if err := p.read(is, from); err != nil {
		return err
	}
	want := append(parts, index...)
	right := func(b []byte) bool { return bytes.Equal(b, want) }
	if !right(is) && !p.restore(is, from, right) {
		at := 0
		for at < min(len(is), len(want)) && is[at] == want[at] {
			at++
		}
		return p.lookupFault(p.corrupt(from+int64(at), "what finds content and spans is not what the commits say"))
	}
	return nil
}

// recordsOf returns the records of a payload, or none if it is no commit.
func recordsOf(payload []byte) []structure.Record {
	c, err := structure.DecodeCommit(payload)
	if err != nil {
		return nil
	}
	return c.Records
}
