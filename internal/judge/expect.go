package judge

import (
	"bytes"
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Expect compares a state with what a commit was made for.
func Expect(v View, o backend.Options) error {
	for _, expect := range o.Tips {
		c, err := v.Context(expect.Context)
		if err := required(c != nil, err, "context", expect.Context); err != nil {
			return err
		}
		if c.Tip != expect.Tip {
			return &backend.TipError{Context: expect.Context, Expected: expect.Tip, Actual: c.Tip}
		}
	}
	for _, expect := range o.Threads {
		is, err := v.Thread(expect.ID)
		if err == nil {
			err = asExpected("thread", expect.ID, expect.Was, is)
		}
		if err != nil {
			return err
		}
	}
	for _, expect := range o.Contexts {
		var is *structure.Context
		c, err := v.Context(expect.ID)
		if c != nil {
			is = &c.Context
		}
		if err == nil {
			err = asExpected("context", expect.ID, expect.Was, is)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *keys) options(o backend.Options) {
	for _, expect := range o.Tips {
		k.context(expect.Context)
	}
	for _, expect := range o.Threads {
		k.add(Key{Kind: KeyThread, ID: expect.ID})
	}
	for _, expect := range o.Contexts {
		k.context(expect.ID)
	}
}

// asExpected compares what a subject was to be, nil for not there, with what it is.
func asExpected[R interface {
	comparable
	structure.Record
}](subject string, id fmt.Stringer, was, is R) error {
	var absent R
	switch {
	case was == absent && is == absent:
		return nil
	case was == absent:
		return refusal(subject, id, backend.ErrExists, "")
	case is == absent:
		return refusal(subject, id, backend.ErrNotFound, "")
	}
	a, err := structure.MarshalRecord(was)
	if err != nil {
		return err
	}
	b, err := structure.MarshalRecord(is)
	if err == nil && !bytes.Equal(a, b) {
		err = refusal(subject, id, backend.ErrConflict, "it has changed")
	}
	return err
}
