package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/graph"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/lineage/transcript"
)

const (
	// maxInside is the number of subagents that can be opened within a window, and maxInsideOne that within a message.
	maxInside    = 100
	maxInsideOne = 20
	// maxCalled is the number of subagents whose ids are searched for in the results of a window.
	maxCalled = 1000
	// minAgentID is the minimum length of a subagent's id for that: shorter ids would be found by chance.
	minAgentID = 6
)

// subagentsOf returns the subagents of a thread, in the order in which they begin. Positions refer to the given
// history.
func (p *Page) subagentsOf(ctx context.Context, subject *subject) (all []*subagent, err error) {
	err = p.graphs.Read(ctx, subject.Info.ID, func(g *graph.Graph) error {
		counts := make(map[*graph.Line]uint64)
		for at := g.Place(subject.Tip); at.Line != nil; at = at.Line.After {
			counts[at.Line] = at.At
		}
		for at, labels := range g.Labels {
			for _, l := range labels {
				if l.Kind != graph.KindSubagent || at.Line == nil || at.Ref() == subject.Tip {
					continue
				}
				s := &subagent{context: l.Context, tip: at.Ref(), length: at.Position(), agent: strings.TrimPrefix(l.About, "agent ")}
				from := at
				for from.Line != nil && counts[from.Line] == 0 {
					from = from.Line.After
				}
				if from.Line != nil {
					s.after = from.Line.At(min(from.At, counts[from.Line])).Position()
				}
				all = append(all, s)
			}
		}
		return nil
	})
	slices.SortFunc(all, func(a, b *subagent) int { return a.context.Compare(b.context) })
	return all, err
}

// addSubagents attaches subagents to the messages of a window: those that fork off there, and those whose id is in
// the result of a call.
func (p *Page) addSubagents(ctx context.Context, v *conversationView, items []*transcript.Item) error {
	if len(v.subagents) == 0 {
		return nil
	}
	n, called := 0, 0
	for _, s := range v.subagents {
		if n == maxInside {
			break
		}
		at := s.after
		if at == 0 && called < maxCalled && len(s.agent) >= minAgentID {
			called++
			at = calledAt(items, s.agent)
		}
		if at == 0 || at < v.From || at > v.To {
			continue
		}
		i, _ := slices.BinarySearchFunc(v.Messages, at+1, func(m *render.Message, at uint64) int { return cmp.Compare(m.Position, at) })
		if i == 0 || len(v.Messages[i-1].Inside) == maxInsideOne {
			continue
		}
		n++
		if err := p.name(ctx, s); err != nil {
			return err
		}
		alone := (&subject{ID: v.ID, In: s.context.String()}).Href(s.after + 1)
		address, _, _ := strings.Cut((&subject{ID: v.ID, In: s.context.String()}).Href(0), "#")
		m := v.Messages[i-1]
		m.Inside = append(m.Inside, render.Inside{Title: s.title, Messages: s.length - min(s.after, s.length), Address: address + "&part=inside", Alone: alone})
	}
	return nil
}

// calledAt returns the position of the call whose result names a subagent, or 0.
func calledAt(items []*transcript.Item, agent string) uint64 {
	for _, i := range items {
		if i.Kind != transcript.Call {
			continue
		}
		for _, r := range i.Call.Results {
			if strings.Contains(r.Text, agent) || bytes.Contains(r.From.Metadata, []byte(`"`+agent+`"`)) {
				return i.From.Position
			}
		}
	}
	return 0
}

// name sets the title of a subagent to the start of its first own text.
func (p *Page) name(ctx context.Context, s *subagent) error {
	s.title = s.agent
	if s.title == "" {
		s.title = s.context.Short()
	}
	w := lineage.Window{From: s.after + 1, To: s.after + 4}
	for m, err := range p.transcribed(ctx, s.tip, w) {
		if errors.Is(err, lineage.ErrNotFound) {
			return nil // collected meanwhile
		}
		if err != nil {
			return err
		}
		for _, i := range transcript.Items(m, transcript.Options{MaxText: most}) {
			if i.Kind == transcript.Prompt || i.Kind == transcript.Answer {
				s.title = short(words(i.Line()), 120)
				return nil
			}
		}
	}
	return nil
}

// inside sends the first own messages of a subagent, to be displayed within the conversation.
func (p *Page) inside(w http.ResponseWriter, r *http.Request, v *conversationView) error {
	before, err := p.o.Store.Position(r.Context(), v.base)
	if err != nil {
		return err
	}
	v.prefix = "s" + markOf(v.In) + "-" // messages of the conversation have the same positions
	v.From, v.To = before+1, min(v.Length, before+window)
	if v.Messages, err = p.messages(r.Context(), v.subject, lineage.Window{From: v.From, To: v.To}); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "inside", &pageData{Body: v})
}

// listSubagents lists the subagents beside the conversation.
func (p *Page) listSubagents(ctx context.Context, v *conversationView) error {
	for _, s := range v.subagents {
		if len(v.Subagents) == beside {
			v.More = true
			break
		}
		if s.title == "" {
			if err := p.name(ctx, s); err != nil {
				return err
			}
		}
		v.Subagents = append(v.Subagents, &besideRow{Name: s.title, Href: (&subject{ID: v.ID, In: s.context.String()}).Href(0)})
	}
	return nil
}
