package columns

import (
	"bytes"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/structure"
)

// body writes or reads the next body and returns its size. A zero byte ends it, and the coded size
// is 0; a body that contains a zero byte has no terminator, and its size plus 1 is
// coded.
func (f *recordCoder) body(kind int, size int64) int64 {
	if f.c.writing {
		f.writeBody(kind, size)
		return size
	}
	return f.readBody(kind)
}

func (f *recordCoder) writeBody(kind int, size int64) {
	b := f.bodies[:size]
	f.bodies = f.bodies[size:]
	laid := &f.laid[kind]
	*laid = append(*laid, b...)
	if bytes.IndexByte(b, 0) >= 0 {
		f.num(fieldSize, uint64(size)+1)
		return
	}
	f.num(fieldSize, 0)
	*laid = append(*laid, 0)
}

func (f *recordCoder) readBody(kind int) (size int64) {
	laid := &f.laid[kind]
	var taken int64 // with the terminator
	if v := f.num(fieldSize, 0); v > 0 {
		size = int64(min(v-1, maxBody+1))
		taken = size
	} else {
		size = int64(bytes.IndexByte(*laid, 0))
		taken = size + 1
	}
	if size < 0 || taken > int64(len(*laid)) {
		f.fail(layout.ErrForm)
		return 0
	}
	f.places, f.sizes = append(f.places, f.begins[kind]), append(f.sizes, size)
	*laid = (*laid)[taken:]
	f.begins[kind] += taken
	return size
}

// record writes a record and the size of its body, or reads them if r is nil. It returns both. The size is -1 for a body that is
// not in the pack.
func (f *recordCoder) record(kind structure.Kind, r structure.Record, size int64) (structure.Record, int64) {
	switch kind {
	case structure.KindBlock:
		b, _ := r.(*structure.Block)
		if b == nil {
			b = next(&f.arena.blocks)
		}
		return b, f.block(b, size)
	case structure.KindChunk:
		if r == nil {
			r = new(structure.Chunk)
		}
		return r, f.body(layout.BodyOther, size)
	case structure.KindSpan:
		s, _ := r.(*structure.Span)
		if s == nil {
			s = next(&f.arena.spans)
		}
		f.span(s)
		return s, -1
	case structure.KindTip:
		t, _ := r.(*structure.Tip)
		if t == nil {
			t = new(structure.Tip)
		}
		t = &structure.Tip{Context: code(f, idContext, t.Context), Span: f.ref(t.Span)}
		return t, -1
	}
	return f.plain(kind, r), -1
}

// A body is whole, cut into chunks, or gone.
const (
	formWhole = iota
	formTree
	formGone
)

func (f *recordCoder) block(b *structure.Block, size int64) int64 {
	b.Type = f.str(textType, b.Type)
	f.origin(&b.Origin)
	b.CreatedAt = f.when(symbolWhenBlock, fieldBlockWhen, b.CreatedAt)
	form := formWhole
	switch {
	case b.Tree.Size != 0:
		form = formTree
	case f.c.writing && size < 0:
		form = formGone
	}
	switch f.symbol(symbolForm, form) {
	case formWhole:
		kind := layout.BodyOther
		if b.Type == content.TypeText {
			kind = layout.BodyText
		}
		size = f.body(kind, size)
		b.Size = size
		return size
	case formTree:
		f.bytes(b.ID[:])
		f.bytes(b.Tree.Key[:])
		b.Tree.Height = f.byte(b.Tree.Height)
		b.Tree.Size = int64(f.num(fieldTreeSize, uint64(b.Tree.Size)))
		if b.Tree.Size <= 0 {
			f.fail(layout.ErrForm)
		}
		b.Size = b.Tree.Size
	case formGone:
		f.bytes(b.ID[:])
		b.Size = int64(f.num(fieldTreeSize, uint64(b.Size)))
		if b.Size <= 0 {
			f.fail(layout.ErrForm)
		}
	default:
		f.fail(layout.ErrForm)
	}
	return -1
}

// A span continues the run of the span before, or states its place.
const (
	spanNext = 1 << iota
	spanInSet
	spanAlone // has one usage
)

func (f *recordCoder) span(s *structure.Span) {
	how := 0
	if f.c.writing {
		if f.ids.number(s.Ref.Run) == f.at.run && s.Ref.Seq == f.at.seq+1 {
			how |= spanNext
		}
		if !s.Set.IsZero() {
			how |= spanInSet
		}
		if len(s.Usages) == 1 {
			how |= spanAlone
		}
	}
	how = f.symbol(symbolSpan, how)
	run := [16]byte(s.Ref.Run)
	switch {
	case how&spanNext == 0:
		f.at.run = f.anID(idRun, &run)
		last := f.at.seqs[f.at.run] + 1
		s.Ref.Seq = uint64(int64(last) + f.signed(fieldSeq, int64(s.Ref.Seq-last)))
	case !f.c.writing:
		known, err := f.id(f.at.run)
		if err != nil {
			f.fail(err)
		}
		run = known.id
		s.Ref.Seq = f.at.seq + 1
	}
	s.Ref.Run = run
	f.at.seq = s.Ref.Seq
	f.at.seqs[f.at.run] = s.Ref.Seq
	if how&spanInSet != 0 {
		s.Set = code(f, idSet, s.Set)
	}
	n := 1
	if how&spanAlone == 0 {
		n = f.count(fieldUsages, len(s.Usages), maxRecords)
	}
	if !f.c.writing {
		if n > maxRecords || f.c.spent() {
			f.fail(layout.ErrForm)
			return
		}
		if s.Usages = nil; n == 1 {
			s.Usages = f.arena.usage()
		}
	}
	for i := range n {
		if f.err != nil || f.c.spent() {
			f.fail(layout.ErrForm)
			return
		}
		if !f.c.writing {
			s.Usages = append(s.Usages, structure.Usage{})
		}
		f.usage(&s.Usages[i])
	}
}
