package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/summarize"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

type merge struct {
	of
	From    string `json:"from" doc:"the context whose messages are appended"`
	Replace bool   `json:"replace,omitempty" doc:"move the context to the tip of the other one instead"`
	ifTip
}

func (o *merge) do(ctx context.Context, w *within) (made, error) {
	target, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	if err := o.check(target.Context, target.Span); err != nil {
		return made{}, err
	}
	source, err := w.context(ctx, of{Thread: o.Thread, Context: o.From})
	if err != nil {
		return made{}, err
	}
	common, err := structure.CommonAncestor(target.Span, source.Span, backend.Runs(ctx, w.store.View()))
	if err != nil {
		return made{}, err
	}
	r := &records.Merged{
		Source: source.Context.ID().String(), Target: target.Context.ID().String(), Strategy: "append", Common: records.SpanID(common), Added: []string{},
	}
	var added []lineage.SpanRef
	if o.Replace {
		r.Strategy = "replace"
		err = target.Context.MoveTo(ctx, source.Span, "replace")
	} else {
		added, err = target.Context.Merge(ctx, source.Context)
	}
	if err != nil {
		return made{}, err
	}
	for _, ref := range added {
		r.Added = append(r.Added, ref.String())
	}
	tip, err := target.Context.Tip(ctx)
	if err != nil {
		return made{}, err
	}
	r.Tip = records.SpanID(tip)
	r.Length, err = w.store.Position(ctx, tip)
	return made{Merged: r}, err
}

type edit struct {
	of
	At      string          `json:"at" doc:"the message"`
	Message json.RawMessage `json:"message" doc:"what it says instead: an input, or a message of a provider as it is"`
	Replay  string          `json:"replay,omitempty" doc:"messages to repeat after it: all, or those of a role"`
	Branch  string          `json:"branch,omitempty" doc:"also make a branch of it under this name"`
}

func (o *edit) do(ctx context.Context, w *within) (made, error) {
	if o.Branch != "" {
		if err := newName(o.Branch); err != nil {
			return made{}, err
		}
	}
	in, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	at, err := w.position(ctx, in, o.At)
	if err != nil {
		return made{}, err
	}
	old, err := refs.New(w.store, in.Thread).Entry(ctx, at)
	if err != nil {
		return made{}, err
	}
	new, err := input(w, o.Message)
	if err != nil {
		return made{}, fmt.Errorf("message: %w", err)
	}
	edited := old.Item()
	edited.Content, edited.Body, edited.CreatedAt = new.Content, new.Body, time.Time{}
	if new.Type != "" {
		edited.Type = new.Type
	}
	options := lineage.EditOptions{Index: at.Index, Replay: lineage.Replaying(o.Replay), Metadata: []byte(lineage.EditMark)}
	if in.Thread != nil {
		options.Thread = in.Thread.ID()
	}
	fork, err := in.Context.Edit(ctx, at.Span, edited, options)
	if err != nil {
		return made{}, err
	}
	if o.Branch != "" {
		if in.Thread == nil {
			return made{}, fmt.Errorf("branch %.100q: %w: the context has no thread", o.Branch, lineage.ErrInvalid)
		}
		if err := in.Thread.NameBranch(ctx, o.Branch, fork); err != nil {
			return made{}, err
		}
	}
	return made{Context: fork.ID().String()}, nil
}

type returnResult struct {
	of
	Message json.RawMessage `json:"message,omitempty" doc:"the result; default the last message of the context"`
}

func (o *returnResult) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	info, err := found.Context.Info(ctx)
	if err != nil {
		return made{}, err
	}
	if info.Parent.IsZero() {
		return made{}, fmt.Errorf("context %s: %w: it has no parent to return to", info.ID, lineage.ErrInvalid)
	}
	if _, err := w.contextByID(ctx, info.Parent.String()); err != nil { // it may be in a thread of another user
		return made{}, err
	}
	var result lineage.Item
	if o.Message == nil {
		result, err = found.Context.Result(ctx, "assistant")
	} else if result, err = input(w, o.Message); err != nil {
		err = fmt.Errorf("message: %w", err)
	}
	if err != nil {
		return made{}, err
	}
	ref, err := found.Context.Return(ctx, result)
	return made{Sent: &records.Sent{From: info.ID.String(), To: info.Parent.String(), ID: ref.String()}}, err
}

type send struct {
	of
	To string `json:"to" doc:"the context that gets it: of the same thread by name, any other by its id"`
	At string `json:"at,omitempty" doc:"the message to send; default the last of the context"`
}

func (o *send) do(ctx context.Context, w *within) (made, error) {
	from, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	at, err := w.position(ctx, from, o.At)
	if err != nil {
		return made{}, err
	}
	e, err := refs.New(w.store, from.Thread).Entry(ctx, at)
	if err != nil {
		return made{}, err
	}
	to, err := w.context(ctx, of{Thread: o.Thread, Context: o.To})
	if errors.Is(err, lineage.ErrNotFound) {
		to, err = w.contextByID(ctx, o.To)
	}
	if err != nil {
		return made{}, err
	}
	ref, err := from.Context.Send(ctx, to.Context, e.Item())
	return made{Sent: &records.Sent{From: from.Context.ID().String(), To: to.Context.ID().String(), ID: ref.String()}}, err
}

type alternativesQuery struct {
	of
	To string `json:"-" query:"to" doc:"the alternatives to this message; default those offered to the context"`
}

func (a *API) listAlternatives(ctx context.Context, c *call, in *alternativesQuery) (*list[*records.Alternative], error) {
	found, err := c.context(ctx, in.of)
	if err != nil {
		return nil, err
	}
	out := &list[*records.Alternative]{}
	if in.To == "" {
		return out, a.offeredTo(ctx, found, out)
	}
	at, err := c.position(ctx, found, in.To)
	if err != nil {
		return nil, err
	}
	all, err := found.Context.AlternativesTo(ctx, at.Span)
	if err != nil {
		return nil, err
	}
	for i, alternative := range all {
		r := &records.Alternative{
			SpanSet: records.ID(alternative.Entry.Set), Filled: true, Chosen: alternative.Current, Model: alternative.Model, Number: i + 1, Of: len(all), ID: alternative.Entry.Span.String(),
			Tip: alternative.Tip.String(), InputTokens: alternative.Input, OutputTokens: alternative.Output, Reported: alternative.Reported, TookMS: alternative.Took.Milliseconds(),
		}
		if r.Text, err = a.line(ctx, alternative.Entry); err != nil {
			return nil, err
		}
		out.Items = append(out.Items, r)
	}
	return out, nil
}

// line returns the content of an entry in one line.
func (a *API) line(ctx context.Context, e *lineage.Entry) (string, error) {
	m, err := a.o.Store.Transcribe(ctx, e, records.MaxPreview)
	if err != nil {
		return "", err
	}
	_, line := transcript.Line(m)
	return line, nil
}

// offeredTo adds the alternatives that were offered to a context.
func (a *API) offeredTo(ctx context.Context, found *refs.Ref, out *list[*records.Alternative]) error {
	for child, err := range found.Context.Children(ctx) {
		if err != nil {
			return err
		}
		info, err := child.Info(ctx)
		if err != nil {
			return err
		}
		if info.Set.IsZero() {
			continue
		}
		r := &records.Alternative{
			SpanSet: info.Set.String(), Context: info.ID.String(), Filled: info.Tip != info.Base, Chosen: info.Tip == found.Span && info.Tip != info.Base,
		}
		if info.Overrides.Model != nil {
			r.Model = *info.Overrides.Model
		}
		if r.Filled {
			last, err := child.Last(ctx, 1)
			if err != nil {
				return err
			}
			if r.Text, err = a.line(ctx, last[len(last)-1]); err != nil {
				return err
			}
		}
		out.Items = append(out.Items, r)
	}
	return nil
}

// maxAlternatives limits the alternatives that are created at once.
const maxAlternatives = 100

type alternatives struct {
	of
	Count  int      `json:"count,omitempty" doc:"how many to offer"`
	Models []string `json:"models,omitempty" doc:"offer one for each of these models, in place of count"`
	To     string   `json:"to,omitempty" doc:"offer one more alternative to this message, such as another try of the same answer"`
}

func (o *alternatives) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	n := max(o.Count, len(o.Models))
	if o.To == "" && n == 0 || n > maxAlternatives || o.To != "" && n > 1 || o.Count < 0 {
		return made{}, fmt.Errorf("alternatives: %w: count or models offer 1 to %d, to offers one", lineage.ErrInvalid, maxAlternatives)
	}
	each := make([]lineage.Overrides, max(n, 1))
	for i := range o.Models {
		each[i].Model = &o.Models[i]
	}
	var offered []*lineage.Context
	if o.To == "" {
		offered, err = found.Context.Alternatives(ctx, each...)
	} else {
		var at *refs.Ref
		if at, err = w.position(ctx, found, o.To); err == nil {
			var created *lineage.Context
			created, err = found.Context.Retry(ctx, at.Span, each[0])
			offered = []*lineage.Context{created}
		}
	}
	if err != nil {
		return made{}, err
	}
	m := made{Contexts: []string{}}
	for _, c := range offered {
		m.Contexts = append(m.Contexts, c.ID().String())
	}
	return m, nil
}

type choose struct {
	of
	Alternative string `json:"alternative" doc:"the context of the alternative"`
	ifTip
}

func (o *choose) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	if err := o.check(found.Context, found.Span); err != nil {
		return made{}, err
	}
	alternative, err := w.context(ctx, of{Thread: o.Thread, Context: o.Alternative})
	if err != nil {
		return made{}, err
	}
	if err := found.Context.Choose(ctx, alternative.Context); err != nil {
		return made{}, err
	}
	return w.moved(ctx, found.Context, found.Span)
}

func (a *API) listSummaries(ctx context.Context, c *call, in *of) (*list[*records.Summary], error) {
	found, err := c.context(ctx, *in)
	if err != nil {
		return nil, err
	}
	length, err := a.o.Store.Position(ctx, found.Span)
	if err != nil {
		return nil, err
	}
	out := &list[*records.Summary]{}
	for s, err := range found.Context.Summaries(ctx) {
		if err != nil {
			return nil, err
		}
		r := records.NewSummary(s)
		if s.Last <= length {
			behind := length - s.Last
			r.Behind = &behind
		}
		out.Items = append(out.Items, r)
	}
	return out, nil
}

// summaryRecord returns the record of a summary that was created.
func (w *within) summaryRecord(ctx context.Context, m *made) (records.Record, error) {
	in, err := w.contextByID(ctx, m.Context)
	if err != nil {
		return nil, err
	}
	for s, err := range in.Context.Summaries(ctx) {
		if err != nil {
			return nil, err
		}
		if s.ID.String() == m.Summary {
			return records.NewSummary(s), nil
		}
	}
	return nil, notFound("summary", m.Summary)
}

type summarizeRange struct {
	of
	Text  string   `json:"text,omitempty" doc:"the summary; without it, sentences are picked"`
	Model string   `json:"model,omitempty" doc:"the model that wrote the text"`
	First uint64   `json:"first,omitempty" doc:"the position of the first message; default after the last summary"`
	Last  uint64   `json:"last,omitempty" doc:"the position of the last message; default the last of the context"`
	Keep  uint64   `json:"keep,omitempty" doc:"leave the last so many messages out"`
	Of    []string `json:"of,omitempty" doc:"the ids of summaries to summarize, in place of messages"`
}

// given is a Summarizer that returns a text of the caller.
type given struct{ text, model string }

// Summarize implements lineage.Summarizer.
func (g given) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: g.text, Model: g.model}, nil
}

func (o *summarizeRange) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	options := lineage.SummarizeOptions{Keep: o.Keep, Range: lineage.Window{From: o.First, To: o.Last}}
	var by lineage.Summarizer = summarize.Extractive{}
	if o.Text != "" {
		by = given{o.Text, o.Model}
		options.MostAtOnce = math.MaxInt // one call for the whole range
	}
	for _, text := range o.Of {
		id, err := structure.ParseID[structure.SummaryID](text)
		if err != nil {
			return made{}, fmt.Errorf("summary %.100q: %w: must be an id", text, lineage.ErrInvalid)
		}
		options.Parts = append(options.Parts, id)
	}
	if len(o.Of) == 0 && o.First == 0 && o.Last == 0 {
		if options.Range, err = w.unsummarized(ctx, found, o.Keep); err != nil {
			return made{}, err
		}
		options.Keep = 0
	}
	s, err := found.Context.Summarize(ctx, by, options)
	if err != nil {
		return made{}, err
	}
	return made{Context: s.Context.String(), Summary: s.ID.String()}, nil
}

// unsummarized returns the messages of a context after its last summary of messages. A transaction cannot list
// summaries, so the last one is looked up outside.
func (w *within) unsummarized(ctx context.Context, found *refs.Ref, keep uint64) (window lineage.Window, err error) {
	if window.To, err = w.store.Position(ctx, found.Span); err != nil {
		return window, err
	}
	window.From, window.To = 1, window.To-min(keep, window.To)
	same, err := w.outside.Context(w.outer, found.Context.ID())
	if err != nil && !errors.Is(err, lineage.ErrNotFound) {
		return window, err
	}
	if err == nil { // the context may have been created in this transaction
		for s, err := range same.Summaries(w.outer) {
			if err != nil {
				return window, err
			}
			if s.Level == 0 {
				window.From = max(window.From, s.Last+1)
			}
		}
	}
	if window.From > window.To {
		return window, fmt.Errorf("summary: %w: there is nothing new to summarize", lineage.ErrInvalid)
	}
	return window, nil
}

type deleteSummary struct {
	of
	Summary string `json:"summary,omitempty" path:"summary" doc:"the id of the summary"`
}

func (o *deleteSummary) do(ctx context.Context, w *within) (made, error) {
	found, err := w.context(ctx, o.of)
	if err != nil {
		return made{}, err
	}
	id, err := structure.ParseID[structure.SummaryID](o.Summary)
	if err != nil {
		return made{}, notFound("summary", o.Summary)
	}
	return made{}, found.Context.DeleteSummary(ctx, id)
}
