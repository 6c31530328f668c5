package columns

import (
	"time"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// plain codes, field by field, a record whose form does not depend on its surroundings.
func (f *recordCoder) plain(kind structure.Kind, r structure.Record) structure.Record {
	if r == nil {
		if r = structure.NewPlain(kind); r == nil {
			f.fail(layout.ErrForm)
			return nil
		}
	}
	if t, ok := r.(*structure.Thread); ok {
		return f.thread(t)
	}
	structure.Walk(r, &plainFields{recordCoder: f, kind: kind})
	return r
}

// plainFields codes the fields of a plain record. The type of a field determines its
// coding; most texts and numbers also have columns of their own.
type plainFields struct {
	*recordCoder
	kind structure.Kind
	// skip, if not nil, reports whether a field is known without coding.
	skip func(name string) bool
}

func (c *plainFields) skips(name string) bool { return c.skip != nil && c.skip(name) }

// idsOf has the kind of id for each kind of record.
var idsOf = [...]int{
	structure.KindThread: idThread, structure.KindContext: idContext, structure.KindRun: idRun, structure.KindSpanSet: idSet,
	structure.KindCheckpoint: idOther, structure.KindSummary: idOther,
}

// textsOf has the kinds of texts; others share one.
var textsOf = map[structure.Kind]map[string]int{
	structure.KindThread: {
		"source id": textThread, "user id": textThreadUser, "title": textTitle, "metadata": textThreadMetadata,
	},
	structure.KindContext: {
		"system prompt": textPrompt, "model": textOverrideModel, "overrides": textOverrides, "metadata": textContextMetadata,
	},
	structure.KindBranch:     {"name": textBranch, "source id": textBranchSource},
	structure.KindCheckpoint: {"name": textCheckpoint, "source id": textBranchSource},
	structure.KindReflog:     {"reason": textReason},
	structure.KindValue:      {"json": textThreadMetadata},
	structure.KindRemnant:    {"system prompt": textPrompt, "model": textOverrideModel, "overrides": textOverrides},
}

func (c *plainFields) textOf(name string) int {
	if kind, ok := textsOf[c.kind][name]; ok {
		return kind
	}
	return textOther
}

func (c *plainFields) ID(name string, of structure.Kind, id *[16]byte) {
	if !c.skips(name) {
		c.anID(idsOf[of], id)
	}
}

func (c *plainFields) Ref(_ string, ref *structure.SpanRef) { *ref = c.ref(*ref) }
func (c *plainFields) Content(_ string, id *content.ID)     { c.bytes(id[:]) }

func (c *plainFields) Text(name string, s *string) {
	if !c.skips(name) {
		*s = c.str(c.textOf(name), *s)
	}
}

func (c *plainFields) OptionalText(name string, s **string) {
	*s = c.optionalString(c.textOf(name), *s)
}

func (c *plainFields) Optional(name string, b *[]byte) {
	if !c.skips(name) {
		*b = c.optional(c.textOf(name), *b)
	}
}

func (c *plainFields) Uint(name string, v *uint64) {
	switch {
	case c.skips(name):
	case name == "incarnation":
		*v = c.incarnation(*v)
	default:
		*v = c.num(fieldCount, *v)
	}
}

func (c *plainFields) Small(_ string, v *uint8) {
	if *v > 15 {
		c.fail(layout.ErrForm)
	}
	*v = uint8(c.symbol(symbolSmall, int(*v&15)))
}

func (c *plainFields) Flag(name string, v *bool) {
	if !c.skips(name) {
		*v = c.flag(*v, symbolFlag)
	}
}

func (c *plainFields) Time(name string, t *time.Time) {
	if !c.skips(name) {
		*t = c.when(symbolWhen, fieldWhen, *t)
	}
}

func (c *plainFields) Count(_ string, given, _ int) int {
	return c.count(fieldParts, given, maxRecords)
}
func (c *plainFields) Refuse(string) { c.fail(layout.ErrForm) }
func (c *plainFields) Failed() bool  { return c.err != nil || c.c.spent() }

// A thread's source id may be the one that its id is derived from. With threadSame,
// everything equals the last statement except for the active context and the time.
const (
	threadDerived = 1 << iota
	threadSame
)

func (f *recordCoder) thread(t *structure.Thread) *structure.Thread {
	how := 0
	if f.c.writing {
		known := f.known(t.ID)
		if last := f.at.threads[known]; known != 0 && last != nil && sameBut(last, t) {
			how = threadSame
		} else if t.SourceID != "" && t.ID == threadOf(t.SourceID) && f.ids.derive(t.ID, t.SourceID) {
			how = threadDerived
		}
	}
	how = f.symbol(symbolThread, how)
	id := [16]byte(t.ID)
	number := f.anID(idThread, &id)
	out := *t
	out.ID = id
	switch {
	case how == threadSame:
		last := f.at.threads[number]
		if last == nil {
			f.fail(layout.ErrForm)
			return t
		}
		active, updated := out.Active, out.UpdatedAt
		out = *last
		out.Active, out.UpdatedAt = active, updated
	case how == threadDerived && !f.c.writing:
		known, err := f.id(number)
		if err == nil && known.source == "" {
			err = layout.ErrForm
		}
		if out.SourceID = known.source; err != nil {
			f.fail(err)
		}
	}
	structure.Walk(&out, &plainFields{recordCoder: f, kind: structure.KindThread, skip: func(name string) bool {
		switch name {
		case "thread id":
			return true
		case "source id":
			return how != 0
		case "active context", "updated":
			return false
		}
		return how == threadSame
	}})
	f.at.threads[number] = &out
	return &out
}

// sameBut reports whether two threads are equal except for the time of the update and
// the active context.
func sameBut(a, b *structure.Thread) bool {
	again := *b
	again.Active, again.UpdatedAt = a.Active, a.UpdatedAt
	return structure.Equal(a, &again)
}

func (f *recordCoder) incarnation(v uint64) uint64 {
	f.at.incarnation += uint64(f.signed(fieldIncarnation, int64(v-f.at.incarnation)))
	return f.at.incarnation
}
