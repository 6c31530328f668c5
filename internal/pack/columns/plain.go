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

func (c *plainFields) ID(name string, idKind structure.Kind, id *[16]byte) {
	if !c.skips(name) {
		c.anID(idsOf[idKind], id)
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

// threadForm is how a thread is coded.
type threadForm int

const (
	threadWhole   threadForm = iota
	threadDerived            // its id follows from its source id, which is not coded again
	threadSame               // it equals its last record but for the active context and the time of the update
)

// has reports whether a field of a thread follows from the form and is not coded.
func (form threadForm) has(field string) bool {
	switch field {
	case "thread id":
		return true
	case "source id":
		return form != threadWhole
	case "active context", "updated":
		return false
	}
	return form == threadSame
}

// threadForm returns the shortest form of a thread, for a writer.
func (f *recordCoder) threadForm(t *structure.Thread) threadForm {
	number := f.known(t.ID)
	if last := f.at.threads[number]; number != 0 && last != nil && sameBut(last, t) {
		return threadSame
	}
	if t.SourceID != "" && t.ID == threadOf(t.SourceID) && f.ids.derive(t.ID, t.SourceID) {
		return threadDerived
	}
	return threadWhole
}

// thread codes a thread, after its form and its id.
func (f *recordCoder) thread(t *structure.Thread) *structure.Thread {
	form := threadWhole
	if f.c.writing {
		form = f.threadForm(t)
	}
	form = threadForm(f.symbol(symbolThread, int(form)))
	id := [16]byte(t.ID)
	number := f.anID(idThread, &id)
	out := *t
	switch {
	case form == threadSame:
		last := f.at.threads[number]
		if last == nil {
			f.fail(layout.ErrForm)
			return t
		}
		out = *last
		out.Active, out.UpdatedAt = t.Active, t.UpdatedAt
	case form == threadDerived && !f.c.writing:
		out.SourceID = f.sourceOf(number)
	}
	out.ID = id
	structure.Walk(&out, &plainFields{recordCoder: f, kind: structure.KindThread, skip: form.has})
	f.at.threads[number] = &out
	return &out
}

// sourceOf returns the source id of which an id was derived, for a reader.
func (f *recordCoder) sourceOf(number uint32) string {
	known, err := f.id(number)
	if err == nil && known.source == "" {
		err = layout.ErrForm
	}
	if err != nil {
		f.fail(err)
	}
	return known.source
}

// sameBut reports whether two threads are equal except for the time of the update and
// the active context.
func sameBut(a, b *structure.Thread) bool {
	copied := *b
	copied.Active, copied.UpdatedAt = a.Active, a.UpdatedAt
	return structure.Equal(a, &copied)
}

func (f *recordCoder) incarnation(v uint64) uint64 {
	f.at.incarnation += uint64(f.signed(fieldIncarnation, int64(v-f.at.incarnation)))
	return f.at.incarnation
}
