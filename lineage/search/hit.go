package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/internal/searched"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/transcript"
	"github.com/lineage-store/lineage/structure"
)

// Hit is a search result: a message, document, asset or summary.
type Hit struct {
	// Entry is the entry found, nil for a summary.
	Entry *lineage.Entry
	// Role is Entry.SearchRole.
	Role string
	// Summary is the id of a summary, else zero. SummarizedAt is its time.
	Summary      structure.SummaryID
	SummarizedAt time.Time
	// Threads are the threads in scope that see the hit through a context or checkpoint, oldest
	// first. Contexts are contexts outside threads that see it.
	Threads  []lineage.ThreadID
	Contexts []lineage.ContextID
	// Rank orders hits; higher is better. In a search for a vector it is the similarity, from -1 to 1.
	Rank float64
	// Snippet is a matching part, with words marked by <mark> and </mark>. What programs add to a message of a person, such as
	// the environment of an agent, is only in it if what the person wrote does not match, without markup and after its name:
	// "(environment_context) cwd: /src". System prompts are in it without the tags of their elements. It has data of the message, such
	// as a language or a rating, only if nothing else matches. Text is the whole searched text, data included. In a search for a vector they are the start of the nearest
	// text of the hit, and the whole of it.
	Snippet, Text string
}

// errStale is returned for a hit that the store no longer has.
var errStale = errors.New("changed since the index was brought up to date")

// foundText is a text of a message.
type foundText struct {
	id   searched.TextID
	text string
	// passages are the parts of the text that are shown where messages are read, none for data.
	passages []transcript.Passage
}

// show loads a hit. match returns its Text and Snippet, and whether it still matches.
func (f *activeSearch) show(ctx context.Context, p address, location *searched.Location, match func(texts []foundText, names []string) (text, snippet string, matches bool)) (h Hit, err error) {
	if f.present != nil {
		if err := f.present.narrow(ctx, location, p.seq); err != nil {
			return h, err
		}
	}
	h.Threads, h.Contexts = location.Threads, location.Contexts
	if len(h.Threads)+len(h.Contexts) == 0 {
		return h, errStale
	}
	var texts []foundText
	var names []string
	if location.Kind == searched.Summary {
		h.Summary = structure.SummaryID(location.Run)
		texts, err = f.summaryText(ctx, location.Owner, &h)
	} else {
		at := structure.SpanRef{Run: location.Run, Seq: uint64(p.seq)}
		if h.Entry, err = f.entry(ctx, at, p.head); err == nil {
			h.Role = h.Entry.SearchRole()
			texts, names, err = f.texts(ctx, at, h.Entry)
		}
	}
	switch {
	case errors.Is(err, lineage.ErrNotFound), errors.Is(err, lineage.ErrErased):
		return h, errStale
	case err != nil:
		return h, err
	}
	matches := false
	if h.Text, h.Snippet, matches = match(texts, names); !matches {
		return h, errStale
	}
	return h, nil
}

// match looks for the words of the query in the texts of a message, and then also in the names. The snippet is of the passages,
// if they match by themselves.
func (f *activeSearch) match(found []foundText, names []string) (text, snippet string, matches bool) {
	var texts []string
	var passages []transcript.Passage
	for _, s := range found {
		texts, passages = append(texts, s.text), append(passages, s.passages...)
	}
	text, _, matches = f.matcher.MatchPieces(texts)
	if !matches && len(names) > 0 {
		texts = append(texts, names...)
		text, _, matches = f.matcher.MatchPieces(texts)
	}
	if !matches {
		return "", "", false
	}
	if snippet = f.matcher.Snippet(passages); snippet == "" {
		_, words, _ := f.matcher.MatchPieces(texts)
		snippet = query.Snippet(text, words, f.matcher.Found)
	}
	return text, snippet, true
}

// readAhead reads the spans of hits together, which takes a few round trips where reads are such. If one of them is gone, each is
// read when it is shown.
func (f *activeSearch) readAhead(ctx context.Context, addresses []searched.Address, locations []searched.Location) {
	var refs []structure.SpanRef
	for i := range locations {
		if locations[i].Kind != searched.Summary {
			refs = append(refs, structure.SpanRef{Run: locations[i].Run, Seq: uint64(addresses[i].Seq)})
		}
	}
	f.ahead = make(map[structure.SpanRef]spanAhead, len(refs))
	entries, err := f.store.Spans(ctx, refs)
	if err != nil {
		return
	}
	steps, err := backend.AtOnce(ctx, f.store.View(), func(s backend.Snapshot) ([]*backend.Step, error) { return backend.Steps(ctx, s, refs) })
	if err != nil {
		return
	}
	for i, at := range refs {
		f.ahead[at] = spanAhead{entries[i], steps[i]}
	}
}

// stepAt returns the step of a span.
func (f *activeSearch) stepAt(ctx context.Context, at structure.SpanRef) (step *backend.Step, err error) {
	if step = f.ahead[at].step; step != nil {
		return step, nil
	}
	for step, err = range f.store.View().Path(ctx, at, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return nil, err
		}
	}
	return step, nil
}

// entry returns the entry of a step that begins with a usage.
func (f *activeSearch) entry(ctx context.Context, at structure.SpanRef, head int) (*lineage.Entry, error) {
	entries := f.ahead[at].entries
	if entries == nil {
		var err error
		if entries, err = f.store.Span(ctx, at); err != nil {
			return nil, err
		}
	}
	for _, e := range entries {
		if e.Index == head {
			return e, nil
		}
	}
	return nil, fmt.Errorf("usage %d of %v: %w", head, at, lineage.ErrNotFound)
}

// texts returns the searched texts of a message or step, and the names of documents and files.
func (f *activeSearch) texts(ctx context.Context, at structure.SpanRef, e *lineage.Entry) (texts []foundText, names []string, err error) {
	step, err := f.stepAt(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	usages := step.Span.Usages
	end := len(usages)
	if !f.steps {
		end = form.End(usages, e.Index)
	}
	known := make(map[searched.TextID]bool)
	for i := e.Index; i < end; i++ {
		u, b := &usages[i], step.Blocks[i]
		r := searched.ReadingOf(u, b)
		if id := searched.TextOf(u.Content, r); !known[id] && (b.Body != nil || b.Tree.Size > 0) {
			known[id] = true
			text, err := searched.ReadText(ctx, f.store.View(), u.Kind, b, r)
			if err != nil {
				return nil, nil, err
			}
			texts = append(texts, foundText{id, text, passages(e, u, r, text)})
		}
		if named := searched.NameOf(u); named != "" {
			names = append(names, named)
		}
	}
	shown := slices.ContainsFunc(texts, func(t foundText) bool { return len(t.passages) > 0 })
	if e.Kind != lineage.Message || len(texts) == 0 || shown {
		return texts, names, nil
	}
	m, err := f.store.Transcribe(ctx, e, lineage.MostText)
	if err != nil {
		return nil, nil, err
	}
	texts[0].passages = transcript.PassagesOf(m) // the message is data that only its format explains
	return texts, names, nil
}

// passages returns the parts of the text of a usage in an entry that are shown, none for data.
func passages(e *lineage.Entry, u *structure.Usage, r form.Reading, text string) []transcript.Passage {
	switch {
	case u.Piece == structure.DataPiece:
		return nil
	case e.Kind != lineage.Message || u.Piece != structure.TextPiece || r != form.Plain:
		return []transcript.Passage{{Text: text}}
	}
	return transcript.Passages(e.Role, text, e.Metadata)
}

// summaryText returns the text of a summary of a context.
func (f *activeSearch) summaryText(ctx context.Context, context structure.ContextID, h *Hit) ([]foundText, error) {
	r, err := summaryIn(ctx, f.store, context, h.Summary)
	if err != nil {
		return nil, err
	}
	h.SummarizedAt = r.CreatedAt
	b, err := searched.BlockIn(ctx, f.store.View(), r.Content)
	if b == nil {
		return nil, errors.Join(err, errStale)
	}
	text, err := searched.ReadText(ctx, f.store.View(), searched.Summary, b, form.Plain)
	return []foundText{{searched.TextOf(r.Content, form.Plain), text, []transcript.Passage{{Text: text}}}}, err
}

// summaryIn returns a summary of a context. It returns ErrNotFound if the summary was deleted since the last update.
func summaryIn(ctx context.Context, store *lineage.Store, context structure.ContextID, id structure.SummaryID) (*structure.Summary, error) {
	for r, err := range store.View().Summaries(ctx, context) {
		if err != nil || r.ID == id {
			return r, err
		}
	}
	return nil, fmt.Errorf("summary %v: %w", id, lineage.ErrNotFound)
}
