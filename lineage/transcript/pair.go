package transcript

import (
	"iter"
	"slices"
)

// Limits of a Pairer, so that its memory does not grow with the history.
const (
	// maxHeld is the number of items that wait because an earlier call has no result yet.
	maxHeld = 512
	// maxKnown is the number of calls that are kept for results that come later.
	maxKnown = 1024
)

// Pairer puts the results of a history into their calls. A result belongs to the oldest call with its id that has no
// result. If it has no id, it belongs to the oldest such call of its tool, or to the oldest of all. A second result
// of a call follows the first. A call waits for its result until the next prompt, or until hundreds of items follow
// it. A result that comes later is an item of its own, which names the call.
type Pairer struct {
	o     Options
	queue []*Item // not returned yet
	// known are the last calls, oldest first. Pairers created by Fork share the start of the list.
	known []*ToolCall
	// open are the calls in the queue.
	open []*ToolCall
	// closed is the number of items in the queue up to the last prompt. They wait for nothing.
	closed int
}

// NewPairer returns a pairer for a history.
func NewPairer(o Options) *Pairer { return &Pairer{o: o} }

// Fork returns a pairer for another history that begins with everything added so far. Waiting calls get only the
// results that p gets. Results in the fork are items of their own, which name the call.
func (p *Pairer) Fork() *Pairer {
	return &Pairer{o: p.o, known: slices.Clip(p.known)}
}

// Add adds the next message.
func (p *Pairer) Add(m *Message) {
	for _, i := range Items(m, p.o) {
		switch i.Kind {
		case Prompt:
			p.closed = len(p.queue)
		case Call:
			p.open, p.known = append(p.open, i.Call), append(p.known, i.Call)
			if len(p.known) > 2*maxKnown {
				p.known = slices.Clone(p.known[len(p.known)-maxKnown:])
			}
		case Result:
			if p.answer(i.Result) {
				continue
			}
		}
		p.queue = append(p.queue, i)
	}
}

// Mark adds a value. It is returned as an item between those of the messages before and after it.
func (p *Pairer) Mark(value any) { p.queue = append(p.queue, &Item{Kind: Mark, Value: value}) }

// answer finds the call of a result and adds the result to it. It reports whether it could.
func (p *Pairer) answer(r *ToolResult) bool {
	if c := find(p.open, r); c != nil {
		if r.Call = c; r.diff != "" {
			c.Diff, c.DiffLeft = p.o.cut(r.diff)
		}
		c.Results = append(c.Results, r)
		return true
	}
	r.Call = find(p.known[max(0, len(p.known)-maxKnown):], r)
	return false
}

// find returns the call of a result: the first without a result, else the last.
func find(calls []*ToolCall, r *ToolResult) *ToolCall {
	var last *ToolCall
	for _, c := range calls {
		switch {
		case r.ID != "" && c.ID != r.ID, r.ID == "" && r.Tool != "" && c.Tool != r.Tool:
		case len(c.Results) == 0:
			return c
		case r.ID != "":
			last = c
		}
	}
	return last
}

// Ready returns the items that are complete.
func (p *Pairer) Ready() []*Item {
	n := 0
	for n < len(p.queue) && (n < p.closed || len(p.queue)-n > maxHeld || p.queue[n].Kind != Call || len(p.queue[n].Call.Results) > 0) {
		n++
	}
	return p.take(n)
}

// Flush returns all items that Ready has not returned.
func (p *Pairer) Flush() []*Item { return p.take(len(p.queue)) }

// take removes the first n items from the queue. Calls among them get no further results.
func (p *Pairer) take(n int) []*Item {
	items := p.queue[:n:n]
	p.queue, p.closed = p.queue[n:], max(0, p.closed-n)
	for _, i := range items {
		if i.Kind == Call {
			p.open = p.open[1:]
		}
	}
	return items
}

// All yields the items of a history, with each result in its call.
func All(history iter.Seq2[*Message, error], o Options) iter.Seq2[*Item, error] {
	return func(yield func(*Item, error) bool) {
		p := NewPairer(o)
		for m, err := range history {
			if err != nil {
				yield(nil, err)
				return
			}
			p.Add(m)
			for _, i := range p.Ready() {
				if !yield(i, nil) {
					return
				}
			}
		}
		for _, i := range p.Flush() {
			if !yield(i, nil) {
				return
			}
		}
	}
}
