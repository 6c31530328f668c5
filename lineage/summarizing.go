package lineage

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/vector"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/structure"
)

// Summarize creates a summary of the messages added since the last one, of another range of the
// history, or of summaries. If there is nothing new, the error is ErrNotFound. The messages stay:
// Resolve uses the summary only to save tokens. Concurrent calls do not wait for each other and may
// summarize the same messages.
func (c *Context) Summarize(ctx context.Context, summarizer Summarizer, o SummarizeOptions) (*SummaryInfo, error) {
	if summarizer == nil {
		return nil, fmt.Errorf("summarize: no summarizer: %w", ErrInvalid)
	}
	if o.MostAtOnce < 0 {
		return nil, fmt.Errorf("summarize at most %d bytes at once: %w", o.MostAtOnce, ErrInvalid)
	}
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	if o.Parts != nil {
		return c.summarizeSummaries(ctx, summarizer, o, tip)
	}
	after, last, err := c.toSummarize(ctx, tip, o)
	if err != nil {
		return nil, err
	}
	var record structure.Summary
	if record.From, err = c.store.At(ctx, tip, after); err != nil {
		return nil, err
	}
	if record.To, err = c.store.At(ctx, tip, last); err != nil {
		return nil, err
	}
	batches := &batches{ctx: ctx, summarizer: summarizer, most: cmp.Or(o.MostAtOnce, defaultBatch)}
	for e, err := range c.store.History(ctx, tip, Window{From: after + 1, To: last}) {
		if err == nil {
			err = c.store.passages(ctx, e, batches.add)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.summarize(ctx, batches, o, record)
}

// toSummarize returns the positions to summarize: from after+1 to last.
func (c *Context) toSummarize(ctx context.Context, tip SpanRef, o SummarizeOptions) (after, last uint64, err error) {
	length, err := c.store.Position(ctx, tip)
	if err != nil {
		return 0, 0, err
	}
	if r := o.Range; r != (Window{}) {
		if o.Keep != 0 || o.Whole || r.Last != 0 || r.From > length || r.To > length || r.To != 0 && r.To < r.From {
			return 0, 0, subjectError("context", c.id.String(), ErrInvalid, fmt.Sprintf("no range from %d to %d of %d messages to summarize", r.From, r.To, length))
		}
		if length == 0 {
			return 0, 0, subjectError("context", c.id.String(), ErrNotFound, "nothing to summarize")
		}
		return max(r.From, 1) - 1, cmp.Or(r.To, length), nil
	}
	if !o.Whole {
		summaries, err := c.store.summariesOn(ctx, c.id, tip)
		if err != nil {
			return 0, 0, err
		}
		for _, s := range summaries {
			if s.Level == 0 {
				after = max(after, s.Last)
			}
		}
	}
	if length < o.Keep || length-o.Keep <= after {
		return 0, 0, subjectError("context", c.id.String(), ErrNotFound, "nothing new to summarize")
	}
	return after, length - o.Keep, nil
}

func (c *Context) summarizeSummaries(ctx context.Context, summarizer Summarizer, o SummarizeOptions, tip SpanRef) (*SummaryInfo, error) {
	summaries, err := c.store.summariesOn(ctx, c.id, tip)
	if err != nil {
		return nil, err
	}
	var record structure.Summary
	batches := &batches{ctx: ctx, summarizer: summarizer, most: cmp.Or(o.MostAtOnce, defaultBatch)}
	var last uint64
	for i, id := range o.Parts {
		at := slices.IndexFunc(summaries, func(s *SummaryInfo) bool { return s.ID == id })
		if at < 0 {
			return nil, subjectError("summary", id.String(), ErrNotFound, "on the history of context "+c.id.String())
		}
		s := summaries[at]
		if i > 0 && s.First != last+1 {
			return nil, subjectError("summary", id.String(), ErrInvalid, "it does not follow the one before it")
		}
		if i == 0 {
			record.From = s.From
		}
		record.To, last = s.To, s.Last
		record.Level = max(record.Level, s.Level+1)
		record.Parts = append(record.Parts, id)
		if err := batches.add(Passage{Role: "assistant", Text: s.Text, Summary: true}); err != nil {
			return nil, err
		}
	}
	if len(o.Parts) == 0 {
		return nil, fmt.Errorf("summarize: no summaries given: %w", ErrInvalid)
	}
	return c.summarize(ctx, batches, o, record)
}

// maxPassage limits the text of a passage, defaultBatch the text summarized at once.
const (
	maxPassage   = content.InlineLimit
	defaultBatch = 1 << 20
)

// passages calls add with the passages of an entry: one, or several if its text is long.
func (s *Store) passages(ctx context.Context, e *Entry, add func(Passage) error) error {
	p := Passage{Role: e.Role, Name: e.Name, Text: e.Excerpt()}
	switch {
	case e.Kind == Document:
		p.Role, p.Name = "document", e.Document
	case e.Kind == Asset:
		p.Role, p.Name = "asset", e.Filename
	}
	var text io.Reader
	switch {
	case e.Kind == Asset || e.Erased && e.message == nil || e.message == nil && e.Body == nil && !isText(e.Type):
		p.Text, p.Absent = e.note(), true
	case e.message == nil && e.Body == nil:
		body, err := s.Body(ctx, e.Content)
		if err != nil {
			return err
		}
		text = body
	case e.message != nil:
		whole, err := s.Text(ctx, e)
		if err != nil {
			return err
		}
		p.Text = whole
	}
	if text == nil && len(p.Text) <= maxPassage {
		return add(p)
	}
	if text == nil {
		text = strings.NewReader(p.Text)
	}
	for in := bufio.NewReaderSize(text, maxPassage); ; p.Continues = true {
		part, err := in.Peek(maxPassage)
		if err != nil && err != io.EOF {
			return err
		}
		if err == nil {
			part = part[:cutText(part)]
		}
		if len(part) == 0 {
			return nil
		}
		p.Text = string(part)
		if err := add(p); err != nil {
			return err
		}
		if _, err := in.Discard(len(part)); err != nil {
			return err
		}
	}
}

// isText reports whether a media type is text.
func isText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || mediaType == content.TypeJSON
}

// cutText returns where to cut a text: after the last line end in its second half, else after the
// last space there, else between characters.
func cutText(text []byte) int {
	half := len(text) / 2
	for _, end := range []string{"\n", " "} {
		if at := strings.LastIndex(string(text[half:]), end); at >= 0 {
			return half + at + len(end)
		}
	}
	for at := len(text); at > len(text)-utf8.UTFMax && at > 1; at-- {
		if utf8.RuneStart(text[at-1]) {
			if r, size := utf8.DecodeRune(text[at-1:]); r != utf8.RuneError || size > 1 {
				return len(text)
			}
			return at - 1
		}
	}
	return len(text)
}

// batches summarizes passages in batches of limited size, and then the summaries of the batches.
type batches struct {
	ctx        context.Context
	summarizer Summarizer
	most       int
	passages   []Passage
	size       int
	// above has the summaries of full batches, nil while there is only one batch.
	above *batches
}

// add adds a passage. If the batch is full, it summarizes it first.
func (b *batches) add(p Passage) error {
	// A batch has at least two summaries, because otherwise the recursion would not end.
	fewest := 1
	if len(b.passages) > 0 && b.passages[0].Summary {
		fewest = 2
	}
	if len(b.passages) >= fewest && b.size+len(p.Text) > b.most {
		if err := b.flush(); err != nil {
			return err
		}
	}
	b.passages, b.size = append(b.passages, p), b.size+len(p.Text)
	return nil
}

func (b *batches) flush() error {
	created, err := b.summarizer.Summarize(b.ctx, b.passages)
	if err != nil {
		return err
	}
	if b.above == nil {
		b.above = &batches{ctx: b.ctx, summarizer: b.summarizer, most: b.most}
	}
	b.passages, b.size = nil, 0
	return b.above.add(Passage{Role: "assistant", Text: created.Text, Summary: true})
}

// done returns the summary of all passages.
func (b *batches) done() (SummaryText, error) {
	if b.above == nil {
		return b.summarizer.Summarize(b.ctx, b.passages)
	}
	if len(b.passages) > 0 {
		if err := b.flush(); err != nil {
			return SummaryText{}, err
		}
	}
	return b.above.done()
}

// summarize stores the summary of passages. record has the range.
func (c *Context) summarize(ctx context.Context, passages *batches, o SummarizeOptions, record structure.Summary) (*SummaryInfo, error) {
	text, err := passages.done()
	if err != nil {
		return nil, fmt.Errorf("summarize context %v: %w", c.id, err)
	}
	if o.Embed != nil {
		embedding, err := o.Embed(ctx, text.Text)
		if err != nil {
			return nil, fmt.Errorf("embed summary of context %v: %w", c.id, err)
		}
		record.Embedding = vector.Encode(embedding)
	}
	item := Item{
		Role: "assistant", Body: []byte(text.Text), Type: content.TypeText, Origin: Origin{Kind: content.OriginAssistant},
	}
	record.Context, record.Model = c.id, text.Model
	var created *structure.Summary
	err = c.store.change(ctx, func(b *write.Batch, _ write.Try) error {
		item.CreatedAt = b.Time()
		var block structure.Block
		if err := c.store.block(ctx, &item, &block); err != nil {
			return err
		}
		b.Adopt(&block)
		record.Content = block.ID
		created = b.Summary(record)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.store.summaryInfo(ctx, c.store.engine, created, c.store.runs(ctx))
}
