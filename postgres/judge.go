package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
)

// errFull is returned for a commit that does not fit into the row.
var errFull = errors.New("the row is full")

// newID returns the id of a row.
func newID() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:]) // never fails
		if id := binary.LittleEndian.Uint64(b[:]); id != 0 {
			return id
		}
	}
}

// judge judges a commit and adds it to the row.
func (e *Engine) judge(p *pending) (receipt backend.Receipt, err error) {
	j := e.judging
	if p.ctx.Err() != nil {
		return receipt, context.Cause(p.ctx)
	}
	if err := p.begin(); err != nil {
		return receipt, err
	}
	if o := p.o.Once; o != nil {
		number, err := applied(j.reader, o, func(c backend.Cursor) error { return e.log.checkCursor(j.reader.ctx, c) })
		if err != nil {
			return receipt, err
		}
		if number > 0 {
			at, err := e.cursorOf(j, number)
			return backend.Receipt{Cursor: at, Repeated: true}, err
		}
	}
	j.state.Begin(j.next(), false)
	if err := judge.Expect(&j.state, p.o); err != nil {
		return receipt, err
	}
	if _, err := p.prepared.DropKnown(j); err != nil {
		return receipt, err
	}
	receipt.Known, receipt.KnownChunks = p.prepared.Known, p.prepared.KnownChunks
	switch {
	case len(p.prepared.Commit.Records) > 0:
		receipt.Cursor, err = j.addPrepared(p)
	case j.row.count > 0: // all of it is known content
		receipt.Cursor = j.row.last()
	default:
		receipt.Cursor = j.reader.state.Cursor
	}
	return receipt, err
}

// addPrepared judges what is new of a commit, and adds it to the row. It returns the cursor of the commit.
func (j *judging) addPrepared(p *pending) (backend.Cursor, error) {
	c := p.prepared.Commit
	payload, offsets, err := j.encoder.Encode(&c)
	if err != nil {
		return backend.Cursor{}, fmt.Errorf("%w: %w", backend.ErrInvalid, err)
	}
	if size := len(j.row.data) + len(payload) + 64; size > maxRow && j.row.count > 0 {
		return backend.Cursor{}, errFull
	}
	s := embedded.Sequenced{Number: j.next(), ID: j.row.id, Payload: bytes.Clone(payload), Once: p.o.Once}
	if err := j.add(p.ctx, &c, s, offsets, false); err != nil {
		return backend.Cursor{}, err
	}
	j.row.once = j.row.once || s.Once != nil
	j.row.data = appendCommit(j.row.data, s)
	j.row.count++
	return backend.Cursor{Number: s.Number, ID: s.ID}, nil
}

// cursorOf returns the cursor of a commit, which may be in the row that is not written yet.
func (e *Engine) cursorOf(j *judging, number uint64) (backend.Cursor, error) {
	if number >= j.row.first {
		return backend.Cursor{Number: number, ID: j.row.id}, nil
	}
	return e.log.cursorOf(j.reader.ctx, number)
}
