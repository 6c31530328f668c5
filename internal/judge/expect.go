package judge

import (
	"fmt"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Expect compares a state with the expectations of a commit.
func Expect(v View, o backend.Options) error {
	for _, expect := range o.Tips {
		if err := expectTip(v, expect); err != nil {
			return err
		}
	}
	for _, expect := range o.Threads {
		now, err := v.Thread(expect.ID)
		if err == nil {
			err = asExpected("thread", expect.ID, expect.Was, now)
		}
		if err != nil {
			return err
		}
	}
	for _, expect := range o.Contexts {
		var now *structure.Context
		c, err := v.Context(expect.ID)
		if c != nil {
			now = &c.Context
		}
		if err == nil {
			err = asExpected("context", expect.ID, expect.Was, now)
		}
		if err != nil {
			return err
		}
	}
	for _, expect := range o.Branches {
		now, err := v.Branch(Name{expect.Thread, expect.Name})
		if err == nil {
			err = asExpected("branch", quoted(expect.Name), expect.Was, now)
		}
		if err != nil {
			return err
		}
	}
	for _, expect := range o.Checkpoints {
		now, err := v.Checkpoint(Name{expect.Thread, expect.Name})
		if err == nil {
			err = asExpected("checkpoint", quoted(expect.Name), expect.Was, now)
		}
		if err != nil {
			return err
		}
	}
	for _, expect := range o.Values {
		if err := expectValue(v, expect); err != nil {
			return err
		}
	}
	for _, expect := range o.Sources {
		if err := expectSource(v, expect); err != nil {
			return err
		}
	}
	return nil
}

// expectSource stops at the first unexpected span.
func expectSource(v View, expect backend.ExpectSource) error {
	seen := 0
	for found, err := range v.Find(expect.SourceID, expect.Thread) {
		switch {
		case err != nil:
			return err
		case len(expect.Spans) == 0:
			return sourceRefusal(expect.SourceID, backend.ErrExists, "in thread "+found.Home.Thread.String())
		case !slices.Contains(expect.Spans, found.Span):
			return sourceRefusal(expect.SourceID, backend.ErrConflict, "it leads to "+found.Span.String())
		}
		seen++
	}
	if seen < len(expect.Spans) {
		return sourceRefusal(expect.SourceID, backend.ErrConflict, "a message with it is gone")
	}
	return nil
}

// quoted is a name in an error.
type quoted string

func (q quoted) String() string { return fmt.Sprintf("%.80q", string(q)) }

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
	for _, expect := range o.Branches {
		k.add(Key{Kind: KeyBranch, ID: expect.Thread, Name: expect.Name})
	}
	for _, expect := range o.Checkpoints {
		k.add(Key{Kind: KeyCheckpoint, ID: expect.Thread, Name: expect.Name})
	}
	for _, expect := range o.Values {
		k.add(Key{Kind: KeyValue, Value: expect.Key})
	}
	for _, expect := range o.Sources {
		k.add(Key{Kind: KeyFind, ID: expect.Thread, Name: expect.SourceID})
	}
}

// asExpected compares a subject with the expected one; nil means that it does not
// exist.
func asExpected[R interface {
	comparable
	structure.Record
}](subject string, id fmt.Stringer, was, now R) error {
	var absent R
	switch {
	case was == absent && now == absent:
		return nil
	case was == absent:
		return refusal(subject, id, backend.ErrExists, "")
	case now == absent:
		return refusal(subject, id, backend.ErrNotFound, "")
	}
	if !structure.Equal(was, now) {
		return refusal(subject, id, backend.ErrConflict, "it has changed")
	}
	return nil
}
