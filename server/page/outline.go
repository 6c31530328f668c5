package page

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// sign is the kind of a message in an outline. A message of several kinds has the largest sign.
type sign byte

const (
	signOther sign = iota
	signResult
	signAnswer
	signCall
	signPrompt
	signFailed
)

const (
	// maxSigns limits the number of cached signs.
	maxSigns   = 32 << 20
	signsAtOne = 512
)

// outlining is the time limit for reading messages in a request. Tests change it.
var outlining = time.Second

// outlines caches the signs of messages, one byte each, by run. A sign never changes, because runs only grow.
type outlines struct {
	store *lineage.Store

	mu   sync.Mutex
	runs map[structure.RunID][]sign
	size int
}

// of returns the signs of a history, from its first message on. If reading them exceeds the time limit, it returns
// the first ones only; the next call continues.
func (o *outlines) of(ctx context.Context, tip lineage.SpanRef) ([]sign, error) {
	segments, err := structure.Segments(tip, structure.Window{}, backend.Runs(ctx, o.store.View()))
	if err != nil {
		return nil, err
	}
	end := time.Now().Add(outlining)
	var all []sign
	for _, s := range segments {
		known, err := o.run(ctx, &s, end)
		if err != nil {
			return nil, err
		}
		all = append(all, known...)
		if uint64(len(known)) < s.Len() {
			break
		}
	}
	return all, nil
}

// run returns the signs of a segment, which starts at the first message of its run.
func (o *outlines) run(ctx context.Context, s *structure.Segment, end time.Time) ([]sign, error) {
	for {
		o.mu.Lock()
		known := o.runs[s.Run.ID]
		o.mu.Unlock()
		n := uint64(len(known))
		if n >= s.Last {
			return known[:s.Last:s.Last], nil
		}
		if !time.Now().Before(end) {
			return known, nil
		}
		to := min(n+signsAtOne, s.Last)
		more, err := o.read(ctx, lineage.SpanRef{Run: s.Run.ID, Seq: to}, lineage.Window{From: s.Run.Position(n + 1), To: s.Run.Position(to)})
		if err != nil {
			return nil, err
		}
		o.mu.Lock()
		if len(o.runs[s.Run.ID]) == int(n) { // nobody else was faster
			if o.size += len(more); o.size > maxSigns {
				o.runs, o.size, known = nil, len(known)+len(more), known[:n:n]
			}
			if o.runs == nil {
				o.runs = make(map[structure.RunID][]sign)
			}
			o.runs[s.Run.ID] = append(known, more...)
		}
		o.mu.Unlock()
	}
}

// read returns the signs of the messages in a window of a history.
func (o *outlines) read(ctx context.Context, tip lineage.SpanRef, w lineage.Window) ([]sign, error) {
	signs := make([]sign, w.To-w.From+1)
	for e, err := range o.store.History(ctx, tip, w) {
		if err != nil {
			return nil, err
		}
		m, err := o.store.Transcribe(ctx, e, preview)
		if err != nil {
			return nil, err
		}
		i := e.Position - w.From
		signs[i] = max(signs[i], signOf(m))
	}
	return signs, nil
}

// signOf returns the sign of a message.
func signOf(m *transcript.Message) (s sign) {
	for _, i := range transcript.Items(m, transcript.Options{MaxText: 1}) {
		switch i.Kind {
		case transcript.Prompt:
			s = max(s, signPrompt)
		case transcript.Answer, transcript.Thinking:
			s = max(s, signAnswer)
		case transcript.Call:
			s = max(s, signCall)
		case transcript.Result:
			s = max(s, signResult)
			if i.Result.Failed || i.Result.Exit != nil && *i.Result.Exit != 0 {
				s = signFailed
			}
		}
	}
	return s
}

// prompt returns the position of the next prompt after a position or, with back, of the last one before it. It is 0
// if there is none within the distance that a request may read.
func (o *outlines) prompt(ctx context.Context, tip lineage.SpanRef, length, at uint64, back bool) (uint64, error) {
	for end := time.Now().Add(outlining); time.Now().Before(end); {
		w := lineage.Window{From: at + 1, To: min(at+signsAtOne, length)}
		if back {
			w = lineage.Window{From: max(at, signsAtOne+1) - signsAtOne, To: max(at, 1) - 1}
		}
		if w.From > w.To {
			break
		}
		signs, err := o.read(ctx, tip, w)
		if err != nil {
			return 0, err
		}
		i := slices.Index(signs, signPrompt)
		if at = w.To; back {
			i, at = lastIndex(signs, signPrompt), w.From
		}
		if i >= 0 {
			return w.From + uint64(i), nil
		}
	}
	return 0, nil
}

func lastIndex(signs []sign, wanted sign) int {
	for i, s := range slices.Backward(signs) {
		if s == wanted {
			return i
		}
	}
	return -1
}
