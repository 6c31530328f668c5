package embedded

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Survey is what a collection of the log finds out in a replica, which it does not change.
type Survey struct{ c collection }

// Survey finds out what lives.
func (e *Engine) Survey(ctx context.Context, o backend.CollectOptions) (*Survey, error) {
	if err := e.begin(); err != nil {
		return nil, err
	}
	defer e.end()
	e.collecting.one.Lock()
	defer e.collecting.one.Unlock()
	e.packing.Lock()
	defer e.packing.Unlock()
	o.DryRun = true
	s := &Survey{collection{ctx: ctx, engine: e, opt: o}}
	s.c.setDefaults()
	if err := s.c.run(); err != nil {
		return nil, fmt.Errorf("collect: %w", err)
	}
	return s, nil
}

// Report says what a collection would remove.
func (s *Survey) Report() backend.CollectReport { return s.c.report }

// Follow takes the commits into account that came since.
func (s *Survey) Follow() error {
	if err := s.c.engine.begin(); err != nil {
		return err
	}
	defer s.c.engine.end()
	return s.c.follow()
}

// LiveSet returns what lives, as of the last commit that was followed.
func (s *Survey) LiveSet() *LiveSet { return &LiveSet{s.c.live} }

// LiveSet is what a collection leaves of the commits of a log.
type LiveSet struct{ l *liveSet }

// Until returns the last commit of which the collection takes anything.
func (l *LiveSet) Until() uint64 { return l.l.until }

// Encode returns the set as bytes, with the store that it belongs to.
func (l *LiveSet) Encode(store [16]byte) ([]byte, error) {
	var b bytes.Buffer
	err := writeLiveSet(&b, store, l.l)
	return b.Bytes(), err
}

// DecodeLiveSet returns the set that belongs to a store. Errors call the bytes by a name.
func DecodeLiveSet(b []byte, store [16]byte, name string) (*LiveSet, error) {
	l, of, err := readLiveSet(bytes.NewReader(b), int64(len(b)), name)
	if err == nil && of != store {
		err = &backend.CorruptError{File: name, What: "belongs to another store"}
	}
	if err != nil {
		return nil, err
	}
	return &LiveSet{l}, nil
}

// Filter takes out of a commit what is dead, and adds that to a report. Of a commit that was
// filtered it takes nothing.
func (l *LiveSet) Filter(s *Sequenced, r *backend.CollectReport) (changed bool, err error) {
	if s.Number > l.l.until {
		return false, nil
	}
	c, err := structure.DecodeCommit(s.Payload)
	if err != nil {
		return false, fmt.Errorf("commit %d: %w", s.Number, err)
	}
	c.Number = s.Number
	var gone collected
	if !l.l.filter(c, &gone) {
		return false, nil
	}
	c.Records = slices.DeleteFunc(c.Records, func(r structure.Record) bool { return r == nil })
	var encoder structure.Encoder
	payload, _, err := encoder.Encode(c)
	if err != nil {
		return false, fmt.Errorf("commit %d: %w", s.Number, err)
	}
	s.Payload = payload
	gone.addTo(r)
	return true, nil
}
