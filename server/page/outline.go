package page

import (
	"context"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// sign says what a message is in an outline. Of a message that is several, the largest counts.
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
	// maxSigns limits the messages whose signs are remembered, and outlining is how long a request may read messages for them.
	maxSigns   = 32 << 20
	outlining  = time.Second
	signsAtOne = 512
)

// outlines remembers what the messages are that were looked at, a byte for each. It is kept by run: what was added to a run
// does not change.
type outlines struct {
	store *lineage.Store

	mu   sync.Mutex
	runs map[structure.RunID][]sign
	size int
}

// of returns the signs of a history, from its first message. They are the first ones only, if reading them would take longer
// than a request may: the next one continues.
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

// run returns the signs of a segment, which begins with the first message of its run.
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
		more, err := o.read(ctx, s, n+1, to)
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

// read returns the signs of some messages of a run.
func (o *outlines) read(ctx context.Context, s *structure.Segment, from, to uint64) ([]sign, error) {
	signs := make([]sign, to-from+1)
	w := structure.Window{From: s.Run.Position(from), To: s.Run.Position(to)}
	for e, err := range o.store.History(ctx, lineage.SpanRef{Run: s.Run.ID, Seq: to}, w) {
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

// signOf returns what a message is.
func signOf(m *transcript.Message) (is sign) {
	for _, i := range transcript.Items(m, transcript.Options{MaxText: 1}) {
		switch i.Kind {
		case transcript.Prompt:
			is = max(is, signPrompt)
		case transcript.Answer, transcript.Thinking:
			is = max(is, signAnswer)
		case transcript.Call:
			is = max(is, signCall)
		case transcript.Result:
			is = max(is, signResult)
			if i.Result.Failed || i.Result.Exit != nil && *i.Result.Exit != 0 {
				is = signFailed
			}
		}
	}
	return is
}

// prompt returns the position of the next prompt after a position, or with back of the one before it: see promptIn.
func (o *outlines) prompt(ctx context.Context, tip lineage.SpanRef, at uint64, back bool) (uint64, error) {
	signs, err := o.of(ctx, tip)
	return promptIn(signs, at, back), err
}

// promptIn returns the prompt next to a position of a history whose first signs are known, 0 if there is none or the messages
// between are not all known.
func promptIn(signs []sign, at uint64, back bool) uint64 {
	known := uint64(len(signs))
	if back && at > known+1 {
		return 0
	}
	if back {
		for n := at; n > 1; n-- {
			if signs[n-2] == signPrompt {
				return n - 1
			}
		}
		return 0
	}
	for n := at; n < known; n++ {
		if signs[n] == signPrompt {
			return n + 1
		}
	}
	return 0
}
