package lineage

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// titlesAtOnce is the number of threads whose first messages are read at once.
const titlesAtOnce = 50

// ShownTitles returns the titles of threads, as ShownTitle does. Where reads are round trips, it takes some for a page of
// threads.
func (s *Store) ShownTitles(ctx context.Context, threads []ThreadInfo) (titles []string, err error) {
	for page := range slices.Chunk(threads, titlesAtOnce) {
		some, err := backend.AtOnce(ctx, s.engine, func(state backend.Snapshot) ([]string, error) {
			ahead, far := state.(backend.ThreadsAhead)
			if !far {
				return s.titlesOneByOne(ctx, page)
			}
			return s.titlesTogether(ctx, state, ahead, page)
		})
		if err != nil {
			return nil, err
		}
		titles = append(titles, some...)
	}
	return titles, nil
}

// titlesOneByOne reads the titles on all processors: a first message is in a chapter of a pack that no other thread needs.
func (s *Store) titlesOneByOne(ctx context.Context, threads []ThreadInfo) ([]string, error) {
	titles, errs := make([]string, len(threads)), make([]error, len(threads))
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), len(threads)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(threads); i = int(next.Add(1)) - 1 {
				if titles[i], errs[i] = s.ShownTitle(ctx, threads[i]); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return titles, errors.Join(errs...)
}

// opening is the start of the history that a thread is named after.
type opening struct {
	thread   *ThreadInfo
	title    string
	known    bool                  // the title is final
	spans    []SpanRef             // the first ones, of which messages may be needed
	messages []*transcript.Message // of the spans that were read
}

// titlesTogether reads the first messages of all threads without a title at once, and more of those that they do not name.
func (s *Store) titlesTogether(ctx context.Context, state backend.Snapshot, ahead backend.ThreadsAhead, threads []ThreadInfo) ([]string, error) {
	openings := make([]opening, len(threads))
	var untitled []ThreadID
	for i := range threads {
		o := &openings[i]
		o.thread = &threads[i]
		if err := o.settle(0); err != nil {
			return nil, err
		}
		if !o.known && !o.thread.ID.IsZero() {
			untitled = append(untitled, o.thread.ID)
		}
	}
	if len(untitled) > 0 {
		if err := ahead.ReachAhead(ctx, untitled); err != nil {
			return nil, err
		}
	}
	for i := range openings {
		if o := &openings[i]; !o.known {
			if err := o.find(ctx, state); err != nil {
				return nil, err
			}
		}
	}
	for first, end := 0, 1; ; first, end = end, 4*end {
		if more, err := s.readOpenings(ctx, state, openings, first, end); !more || err != nil {
			return titlesOf(openings), err
		}
	}
}

func titlesOf(openings []opening) (titles []string) {
	for i := range openings {
		titles = append(titles, openings[i].title)
	}
	return titles
}

// find finds the first spans of the history.
func (o *opening) find(ctx context.Context, state backend.Snapshot) error {
	tip, err := titledBy(ctx, state, o.thread)
	if err != nil {
		return err
	}
	segments, err := structure.Segments(tip, Window{To: transcript.TitleMessages}, backend.Runs(ctx, state))
	for _, s := range segments {
		for seq := s.First; seq <= s.Last; seq++ {
			o.spans = append(o.spans, SpanRef{Run: s.Run.ID, Seq: seq})
		}
	}
	return err
}

// readOpenings reads spans from first to before end of the threads whose title is not known. It reports whether there are
// such threads left.
func (s *Store) readOpenings(ctx context.Context, state backend.Snapshot, openings []opening, first, end int) (more bool, err error) {
	var refs []SpanRef
	spansOf := func(o *opening) []SpanRef {
		if o.known {
			return nil
		}
		return o.spans[min(first, len(o.spans)):min(end, len(o.spans))]
	}
	for i := range openings {
		refs = append(refs, spansOf(&openings[i])...)
	}
	steps, err := backend.Steps(ctx, state, refs)
	if err != nil {
		return false, err
	}
	entries := entryReader{from: state}
	if err := entries.reader().Ahead(ctx, steps); err != nil {
		return false, err
	}
	for i := range openings {
		o := &openings[i]
		if o.known {
			continue
		}
		n := len(spansOf(o))
		for _, step := range steps[:n] {
			if err := s.addOpening(ctx, &entries, o, step); err != nil {
				return false, err
			}
		}
		steps = steps[n:]
		if err := o.settle(end); err != nil {
			return false, err
		}
		more = more || !o.known
	}
	return more, nil
}

// addOpening adds the messages of a step.
func (s *Store) addOpening(ctx context.Context, entries *entryReader, o *opening, step *backend.Step) error {
	for i := 0; i < len(step.Span.Usages); i = form.End(step.Span.Usages, i) {
		e, err := entries.entry(ctx, step, i)
		if err != nil {
			return err
		}
		m, err := s.Transcribe(ctx, e, content.InlineLimit)
		if err != nil {
			return err
		}
		o.messages = append(o.messages, m)
	}
	return nil
}

// errMoreMessages ends the messages of an opening that were read so far.
var errMoreMessages = errors.New("there may be more messages")

// settle finds the title among the messages. It is final if it does not depend on the spans after the first ones that were
// read.
func (o *opening) settle(read int) (err error) {
	o.title, err = transcript.Title(o.thread.Title, o.thread.SourceID, func(yield func(*transcript.Message, error) bool) {
		for _, m := range o.messages {
			if !yield(m, nil) {
				return
			}
		}
		if read == 0 || read < len(o.spans) {
			yield(nil, errMoreMessages)
		}
	})
	o.known = err == nil
	if errors.Is(err, errMoreMessages) {
		err = nil
	}
	return err
}
