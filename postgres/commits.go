package postgres

import (
	"bytes"
	"fmt"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/embedded/read"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// FileOf implements read.Commits.
func (t *stateReader) FileOf(p journal.Position) string {
	return fmt.Sprintf("row %d of the log", p.Offset)
}

// Damage implements read.Commits.
func (t *stateReader) Damage() error { return nil }

// Collecting implements read.Commits.
func (t *stateReader) Collecting() bool { return t.state.collecting }

// NewReader implements read.Commits.
func (t *stateReader) NewReader() read.Reader { return &commitReader{t: t} }

// LastSpan implements read.Packs.
func (t *stateReader) LastSpan(run structure.RunID) (structure.SpanRef, error) {
	prefix := keys.Of(keys.TableSpan, run[:])
	e, ok, err := t.Last(prefix, keys.PrefixEnd(prefix))
	if err != nil || !ok {
		return structure.SpanRef{}, err
	}
	return structure.SpanRef{Run: run, Seq: keys.ReadUint64(e.Key[len(prefix):])}, nil
}

// SpansAt implements read.Packs.
func (t *stateReader) SpansAt(structure.SpanRef) (journal.Spans, journal.Position, bool, error) {
	return journal.Spans{}, journal.Position{}, false, nil
}

// Object implements read.Packs.
func (t *stateReader) Object(r read.Reader, key []byte) (structure.Record, keys.Location, bool, error) {
	value, ok, err := t.Get(key)
	if err != nil || !ok {
		return nil, keys.Location{}, false, err
	}
	p, err := keys.ReadLocation(value)
	if err != nil {
		return nil, p, false, err
	}
	record, err := r.(*commitReader).object(p.Frame, key)
	return record, p, true, err
}

// commits returns the commits of a row of the log.
func (t *stateReader) commits(first uint64) ([]embedded.Sequenced, error) {
	if commits, ok := t.knownCommits(first); ok {
		return commits, nil
	}
	r := t.rows.fetched[first]
	if r == nil {
		if err := t.read(t.ctx, need{rows: t.rows.next(first)}); err != nil {
			return nil, err
		}
		if r = t.rows.fetched[first]; r == nil {
			return nil, &backend.CorruptError{File: "the log", What: fmt.Sprintf("row %d is missing", first)}
		}
	}
	commits, err := r.commits()
	if err != nil {
		return nil, err
	}
	t.rows.current = &decodedRow{first, commits}
	if !t.state.collecting {
		t.cache.putRow(first, commits)
	}
	return commits, nil
}

// commitReader reads commits of rows of the log. The position of a commit is its place in the row, and the number of the row.
type commitReader struct {
	t        *stateReader
	at       journal.Position
	contents map[[17]byte]structure.Record // of the commit that was decoded last
}

// positionOf returns the position of a commit in a row.
func positionOf(first, number uint64) journal.Position {
	return journal.Position{Segment: uint32(number - first), Offset: int64(first)}
}

// Frame implements read.Reader. The caller may change what it decodes from the payload.
func (r *commitReader) Frame(p journal.Position) (journal.Frame, error) {
	r.at = p
	commits, err := r.t.commits(uint64(p.Offset))
	if err != nil {
		return journal.Frame{}, err
	}
	if int(p.Segment) >= len(commits) {
		return journal.Frame{}, &backend.CorruptError{File: r.Name(), What: fmt.Sprintf("it has no commit %d", uint64(p.Offset)+uint64(p.Segment))}
	}
	c := &commits[p.Segment]
	return journal.Frame{Position: p, End: p.Offset + 1, Number: c.Number, ID: c.ID, Payload: bytes.Clone(c.Payload), PayloadOffset: p.Offset}, nil
}

// Object implements read.Reader. Objects are found by their keys: their places in a commit change when something before
// them is collected.
func (r *commitReader) Object(journal.Position, int64, int64) (structure.Record, error) {
	return nil, &backend.CorruptError{File: r.Name(), What: "an object without a key"}
}

// object returns the block or chunk with a key in the commit at a position.
func (r *commitReader) object(p journal.Position, key []byte) (structure.Record, error) {
	if r.contents == nil || r.at != p {
		frame, err := r.Frame(p)
		if err != nil {
			return nil, err
		}
		if r.contents, err = contentsOf(frame.Payload); err != nil {
			return nil, &backend.CorruptError{File: r.Name(), What: err.Error()}
		}
	}
	record := r.contents[[17]byte(key)]
	if record == nil {
		return nil, &backend.CorruptError{File: r.Name(), What: fmt.Sprintf("it does not have %c:%x", key[0], key[1:])}
	}
	return record, nil
}

// contentsOf returns the blocks and chunks of a commit by their keys, the last one of each.
func contentsOf(payload []byte) (map[[17]byte]structure.Record, error) {
	d, err := structure.NewDecoder(payload)
	if err != nil {
		return nil, err
	}
	all := make(map[[17]byte]structure.Record)
	for d.More() {
		_, record, err := d.Next()
		if err != nil {
			return nil, err
		}
		switch c := record.(type) {
		case *structure.Block:
			all[[17]byte(keys.Block(c.ID))] = c
		case *structure.Chunk:
			all[[17]byte(keys.Chunk(c.Key))] = c
		}
	}
	return all, nil
}

// Place implements read.Reader.
func (r *commitReader) Place(journal.Position, structure.SpanRef) (journal.File, *journal.PackedSpans, error) {
	return journal.File{}, nil, nil
}

// Name implements read.Reader.
func (r *commitReader) Name() string { return r.t.FileOf(r.at) }
