package pack

import (
	"bytes"
	"slices"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/pack/lookup"
	"github.com/lineage-store/lineage/structure"
)

// Spans are the spans of a commit in one chapter, for reading one by one: only the bodies
// that a span uses are copied. Results share no memory with the pack. It is not safe for
// concurrent use.
type Spans struct {
	// Number is the number of the commit.
	Number uint64
	// Next is the start of the frame with the span after the last one: of the next frame,
	// or of this one if the commit continues in another chapter.
	Next int64

	p      *File
	at     commitPiece
	layout *structure.Layout // for a verbatim commit
	spans  []packedSpan
	names  []int // of the content that the commit names: the record of the block, or -1
}

type packedSpan struct {
	span  *structure.Span
	used  int // contents named by earlier usages
	names int // names before it
}

// Spans returns the spans in a piece of the commit whose frame was at a position: the piece that has a wanted span or, if
// none has it, the first.
func (p *File) Spans(segment uint32, offset int64, wanted structure.SpanRef) (*Spans, error) {
	n, err := p.chapterAt(segment, offset)
	if err != nil {
		return nil, err
	}
	continuations := p.continuationsAt(n, segment, offset)
	if guess := guessPiece(continuations, p.rows[n].Commit+uint64(p.rows[n].Commits)-1, wanted, p.begins(continuations, wanted)); guess > 0 {
		at, err := p.continuationIn(n + guess)
		if err != nil {
			return nil, err
		}
		if s := p.spansIn(at); s.Find(wanted) >= 0 {
			return s, nil
		}
	}
	at, err := p.locate(segment, offset)
	if err != nil {
		return nil, err
	}
	if at.x.Verbatim {
		s := &Spans{Number: at.x.Number, Next: at.x.End, p: p, at: at, layout: new(structure.Layout)}
		payload, err := p.bodyIn(at.c.bodies, uint64(at.x.Bodies[0]))
		if err == nil {
			err = s.layout.Reset(payload)
		}
		return s, err
	}
	first := p.spansIn(at)
	for s := first; ; s = p.spansIn(at) {
		if s.Find(wanted) >= 0 {
			return s, nil
		}
		if !at.x.Open {
			return first, nil
		}
		if at, err = p.after(at); err != nil {
			return nil, err
		}
	}
}

func (p *File) spansIn(at commitPiece) *Spans {
	s := &Spans{Number: at.x.Number, Next: at.x.End, p: p, at: at}
	if at.x.Open {
		s.Next = at.x.Start
	}
	used := 0
	for i, r := range at.x.Records {
		switch r := r.(type) {
		case *structure.Block:
			s.names = append(s.names, i)
		case *structure.Span:
			s.spans = append(s.spans, packedSpan{r, used, len(s.names)})
			var named [3]*content.ID
			for k := range r.Usages {
				for range r.Usages[k].Named(named[:0]) {
					if at.x.Content[used].Back < 0 {
						s.names = append(s.names, -1)
					}
					used++
				}
			}
		}
	}
	return s
}

// Len returns the number of spans.
func (s *Spans) Len() int {
	if s.layout != nil {
		return s.layout.Len()
	}
	return len(s.spans)
}

// Ref returns the place of the i-th span.
func (s *Spans) Ref(i int) structure.SpanRef {
	if s.layout != nil {
		return s.layout.Ref(i)
	}
	return s.spans[i].span.Ref
}

// Find returns the index of a span, or -1.
func (s *Spans) Find(ref structure.SpanRef) int {
	if s.layout != nil {
		return s.layout.Find(ref)
	}
	return slices.IndexFunc(s.spans, func(x packedSpan) bool { return x.span.Ref == ref })
}

// Read reads the i-th span.
func (s *Spans) Read(i int, _ bool, into *structure.Reading) error {
	if s.layout != nil {
		return s.layout.Read(i, true, into)
	}
	into.Begin()
	x := s.spans[i]
	into.Span.Ref, into.Span.Set = x.span.Ref, x.span.Set
	into.Span.Usages = append(into.Span.Usages, x.span.Usages...)
	var named [3]*content.ID
	for k := range into.Span.Usages {
		u := &into.Span.Usages[k]
		for n, id := range u.Named(named[:0]) {
			block := new(structure.Block)
			if n == 0 {
				block = nil
			}
			var err error
			if *id, err = s.content(&x, func() *structure.Block {
				if block == nil {
					block = into.Block(k)
				}
				return block
			}); err != nil {
				return err
			}
		}
		u.CloneBytes()
		if u.Origin != nil {
			o := *u.Origin
			u.Origin = &o
		}
	}
	into.End()
	return nil
}

// content returns the id of the next content that the span names. If it is a block of the
// commit in the same chapter, it also sets the block.
func (s *Spans) content(x *packedSpan, to func() *structure.Block) (content.ID, error) {
	r := &s.at.x.Content[x.used]
	x.used++
	record := -1
	if r.Back < 0 {
		x.names++
	} else if r.Back < x.names {
		record = s.names[x.names-1-r.Back]
	}
	if record < 0 {
		return s.p.contentID(r)
	}
	block := to()
	*block = *s.at.x.Records[record].(*structure.Block)
	if s.at.x.Bodies[record] >= 0 {
		body, err := s.p.bodyIn(s.at.c.bodies, uint64(s.at.x.Bodies[record]))
		if err != nil {
			return content.ID{}, err
		}
		block.Body, block.ID = bytes.Clone(body), content.Sum(body)
	}
	return block.ID, nil
}

// begins returns the first stretch of a span's run if that helps to find the span and
// is known.
func (p *File) begins(continuations []layout.ChapterRow, ref structure.SpanRef) (s lookup.Stretch) {
	if len(continuations) == 0 {
		return s
	}
	k := cacheKey{&p.mendedFile, cachedBegin, uint64(lookup.RunFingerprint(ref.Run))}
	known, ok := p.cache.get(k).(*listedRun)
	if !ok && p.foot.DirectorySize > 0 {
		if _, err := p.Run(ref.Run, ref.Seq); err != nil {
			return s // without it the search takes longer
		}
		known, ok = p.cache.get(k).(*listedRun)
	}
	if ok && known.id == ref.Run {
		s = known.stretches[0]
	}
	return s
}
