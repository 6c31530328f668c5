package pack

import (
	"bytes"
	"fmt"

	"github.com/lineage-store/lineage/structure"
)

// plain codes a record whose form depends on nothing around it.
func (f *former) plain(kind structure.Kind, r structure.Record) structure.Record {
	switch kind {
	case structure.KindThread:
		t, _ := r.(*structure.Thread)
		if t == nil {
			t = new(structure.Thread)
		}
		return f.thread(t)
	case structure.KindContext:
		x, _ := r.(*structure.Context)
		if x == nil {
			x = new(structure.Context)
		}
		return &structure.Context{
			ID: code(f, idContext, x.ID), Thread: code(f, idThread, x.Thread), Parent: code(f, idContext, x.Parent),
			Base: f.ref(x.Base), Tip: f.ref(x.Tip), Set: code(f, idSet, x.Set),
			Overrides: structure.Overrides{
				SystemPrompt: f.optionalString(textPrompt, x.Overrides.SystemPrompt),
				Model:        f.optionalString(textOverrideModel, x.Overrides.Model),
				JSON:         f.optional(textOverrides, x.Overrides.JSON),
			},
			Metadata: f.optional(textContextMetadata, x.Metadata), CreatedAt: f.when(symbolWhen, fieldWhen, x.CreatedAt),
		}
	case structure.KindRun:
		x, _ := r.(*structure.Run)
		if x == nil {
			x = new(structure.Run)
		}
		return &structure.Run{ID: code(f, idRun, x.ID), Parent: f.ref(x.Parent)}
	case structure.KindSpanSet:
		x, _ := r.(*structure.SpanSet)
		if x == nil {
			x = new(structure.SpanSet)
		}
		return &structure.SpanSet{
			ID: code(f, idSet, x.ID), Parent: f.ref(x.Parent), Count: f.num(fieldCount, x.Count), CreatedAt: f.when(symbolWhen, fieldWhen, x.CreatedAt),
		}
	case structure.KindBranch:
		x, _ := r.(*structure.Branch)
		if x == nil {
			x = new(structure.Branch)
		}
		return &structure.Branch{
			Thread: code(f, idThread, x.Thread), Name: f.str(textBranch, x.Name), Context: code(f, idContext, x.Context), CreatedAt: f.when(symbolWhen, fieldWhen, x.CreatedAt),
		}
	case structure.KindReflog:
		x, _ := r.(*structure.Reflog)
		if x == nil {
			x = new(structure.Reflog)
		}
		return &structure.Reflog{
			Context: code(f, idContext, x.Context), From: f.ref(x.From), To: f.ref(x.To), Reason: f.str(textReason, x.Reason), At: f.when(symbolWhen, fieldWhen, x.At),
		}
	}
	return f.marshalled(kind, r)
}

// marshalled codes a record of any other kind as its binary form.
func (f *former) marshalled(kind structure.Kind, r structure.Record) structure.Record {
	var b []byte
	if f.c.writing {
		var err error
		if b, err = structure.MarshalRecord(r); err != nil {
			f.fail(err)
			return nil
		}
	}
	b = []byte(f.str(textOther, string(b)))
	if f.c.writing || f.err != nil {
		return r
	}
	r, err := structure.UnmarshalRecord(kind, b)
	if err != nil {
		f.fail(fmt.Errorf("%w: %w", errForm, err))
	}
	return r
}

// A thread's source is the one that its id is derived from, or a text; or everything but
// where the thread stands is as it was.
const (
	threadDerived = 1 << iota
	threadSame
)

func (f *former) thread(t *structure.Thread) *structure.Thread {
	how := 0
	if f.c.writing {
		known := f.known(t.ID)
		if last := f.at.threads[known]; known != 0 && last != nil && last.SourceID == t.SourceID && last.UserID == t.UserID && last.Title == t.Title &&
			bytes.Equal(last.Metadata, t.Metadata) && (last.Metadata == nil) == (t.Metadata == nil) && last.Incarnation == t.Incarnation &&
			last.CreatedAt.Equal(t.CreatedAt) {
			how = threadSame
		} else if t.SourceID != "" && t.ID == threadOf(t.SourceID) && f.derive(t.ID, t.SourceID) {
			how = threadDerived
		}
	}
	how = f.symbol(symbolThread, how)
	id := [16]byte(t.ID)
	number := f.anID(idThread, &id)
	out := &structure.Thread{ID: id}
	if last := f.at.threads[number]; how == threadSame {
		if last == nil {
			f.fail(errForm)
			return t
		}
		again := *last
		out = &again
	} else {
		switch {
		case how != threadDerived:
			out.SourceID = f.str(textThread, t.SourceID)
		case f.c.writing:
			out.SourceID = t.SourceID
		default:
			known, err := f.id(number)
			if err == nil && known.source == "" {
				err = errForm
			}
			if out.SourceID = known.source; err != nil {
				f.fail(err)
			}
		}
		out.UserID, out.Title = f.str(textThreadUser, t.UserID), f.str(textTitle, t.Title)
		out.Metadata = f.optional(textThreadMetadata, t.Metadata)
		out.Incarnation = f.incarnation(t.Incarnation)
		out.CreatedAt = f.when(symbolWhen, fieldWhen, t.CreatedAt)
		f.scope(scope{out.ID, out.Incarnation})
	}
	out.Active = code(f, idContext, t.Active)
	out.UpdatedAt = f.when(symbolWhen, fieldWhen, t.UpdatedAt)
	f.at.threads[number] = out
	return out
}

func (f *former) incarnation(v uint64) uint64 {
	f.at.incarnation += uint64(f.signed(fieldIncarnation, int64(v-f.at.incarnation)))
	return f.at.incarnation
}

func threadOf(source string) structure.ThreadID {
	return structure.DeriveID[structure.ThreadID]("thread", source)
}

// known returns the number of an id that was coded before in this pack, else 0.
func (f *former) known(id [16]byte) uint32 {
	if f.look == nil {
		return 0
	}
	if n := f.look(id); n < f.at.nextID {
		return n
	}
	return 0
}
