package search

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lineage-store/lineage/internal/derivedfile"
	"github.com/lineage-store/lineage/internal/form"
	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Hit is a search result: a message, document, asset or summary.
type Hit struct {
	// Entry is the entry found, nil for a summary.
	Entry *lineage.Entry
	// Summary is the id of a summary, else zero. SummarizedAt is its time.
	Summary      structure.SummaryID
	SummarizedAt time.Time
	// Threads are the threads in scope that see the hit through a context or checkpoint, oldest
	// first. Contexts are contexts outside threads that see it.
	Threads  []lineage.ThreadID
	Contexts []lineage.ContextID
	// Rank orders hits; higher is better. In a search for a vector it is the similarity, from -1 to 1.
	Rank float64
	// Snippet is a matching part, with words marked by <mark> and </mark>. It has data of the message, such as a
	// language or a rating, only if nothing else matches. Text is the whole searched text, data included. In a search
	// for a vector they are the start of the nearest text of the hit, and the whole of it.
	Snippet, Text string
}

// errStale is returned for a hit that the store no longer has.
var errStale = errors.New("changed since the index was brought up to date")

// foundText is a text of a message.
type foundText struct {
	id   textID
	text string
	// data is set for a text that is not shown where messages are read.
	data bool
}

// show loads a hit. match returns its Text and Snippet, and whether it still matches.
func (f *finding) show(ctx context.Context, p address, role int64, match func(texts []foundText, names []string) (text, snippet string, matches bool)) (h Hit, err error) {
	var id []byte
	var kind structure.UsageKind
	err = f.conn.QueryRowContext(ctx, `SELECT r.id, o.kind FROM runs r, roles o WHERE r.number = ? AND o.number = ?`, p.run, role).Scan(&id, &kind)
	if err != nil || len(id) != 16 {
		return h, fmt.Errorf("run %d: %w: %w", p.run, derivedfile.ErrUseless, err)
	}
	var texts []foundText
	var names []string
	if kind == summary {
		h.Summary = structure.SummaryID(id)
		texts, err = f.summaryText(ctx, &h)
	} else {
		at := structure.SpanRef{Run: structure.RunID(id), Seq: uint64(p.seq)}
		if h.Entry, err = f.entry(ctx, at, p.head); err == nil {
			texts, names, err = f.texts(ctx, at, p.head)
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
	return h, f.seenBy(ctx, p, &h)
}

// match looks for the words of the query in the texts of a message, and then also in the names. The snippet is of the
// texts that are not data, if they match by themselves.
func (f *finding) match(found []foundText, names []string) (text, snippet string, matches bool) {
	var texts, said []string
	for _, s := range found {
		if texts = append(texts, s.text); !s.data {
			said = append(said, s.text)
		}
	}
	text, words, matches := f.matcher.MatchPieces(texts)
	if !matches && len(names) > 0 {
		texts = append(texts, names...)
		text, words, matches = f.matcher.MatchPieces(texts)
	}
	if !matches {
		return "", "", false
	}
	if len(said) < len(found) {
		if shown, words, alone := f.matcher.MatchPieces(said); alone {
			return text, query.Snippet(shown, words, f.matcher.Found), true
		}
		text, words, _ = f.matcher.MatchPieces(texts)
	}
	return text, query.Snippet(text, words, f.matcher.Found), true
}

// entry returns the entry of a step that begins with a usage.
func (f *finding) entry(ctx context.Context, at structure.SpanRef, head int) (*lineage.Entry, error) {
	entries, err := f.store.Span(ctx, at)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Index == head {
			return e, nil
		}
	}
	return nil, fmt.Errorf("usage %d of %v: %w", head, at, lineage.ErrNotFound)
}

// texts returns the searched texts of a message or step, and the names of documents and files.
func (f *finding) texts(ctx context.Context, at structure.SpanRef, head int) (texts []foundText, names []string, err error) {
	for step, err := range f.store.View().Path(ctx, at, structure.Window{Last: 1}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return nil, nil, err
		}
		usages := step.Span.Usages
		end := len(usages)
		if !f.steps {
			end = form.End(usages, head)
		}
		known := make(map[textID]bool)
		for i := head; i < end; i++ {
			u, b := &usages[i], step.Blocks[i]
			r := readingOf(u, b)
			if id := textOf(u.Content, r); !known[id] && (b.Body != nil || b.Tree.Size > 0) {
				known[id] = true
				text, err := readText(ctx, f.store.View(), u.Kind, b, r)
				if err != nil {
					return nil, nil, err
				}
				texts = append(texts, foundText{id, text, u.Piece == structure.DataPiece})
			}
			if named := nameOf(u); named != "" {
				names = append(names, named)
			}
		}
	}
	return texts, names, nil
}

// summaryText returns the text of a summary.
func (f *finding) summaryText(ctx context.Context, h *Hit) ([]foundText, error) {
	var of []byte
	if err := f.conn.QueryRowContext(ctx, `SELECT of FROM tips WHERE id = ?`, h.Summary[:]).Scan(&of); err != nil {
		return nil, fmt.Errorf("summary %v: %w: %w", h.Summary, derivedfile.ErrUseless, err)
	}
	r, err := summaryIn(ctx, f.store, of, h.Summary)
	if err != nil {
		return nil, err
	}
	h.SummarizedAt = r.CreatedAt
	b, err := derivedfile.BlockIn(ctx, f.store.View(), r.Content)
	if b == nil {
		return nil, errors.Join(err, errStale)
	}
	text, err := readText(ctx, f.store.View(), summary, b, form.Plain)
	return []foundText{{id: textOf(r.Content, form.Plain), text: text}}, err
}

// summaryIn returns a summary, given column "of" of its tip. It returns ErrNotFound if the summary was
// deleted since the last update.
func summaryIn(ctx context.Context, store *lineage.Store, of []byte, id structure.SummaryID) (*structure.Summary, error) {
	if len(of) != 17 {
		return nil, fmt.Errorf("summary %v: %w", id, derivedfile.ErrUseless)
	}
	for r, err := range store.View().Summaries(ctx, structure.ContextID(of[1:])) {
		if err != nil || r.ID == id {
			return r, err
		}
	}
	return nil, fmt.Errorf("summary %v: %w", id, lineage.ErrNotFound)
}

// seenBy sets the threads and contexts in scope that see a hit.
func (f *finding) seenBy(ctx context.Context, p address, h *Hit) error {
	if !f.Thread.IsZero() {
		h.Threads = []lineage.ThreadID{f.Thread}
		return nil
	}
	contexts := make(map[lineage.ContextID]bool)
	where := `TRUE`
	if f.scoped() {
		where = f.inScope()
	}
	err := derivedfile.Each(ctx, f.conn, func(scan func(...any) error) error {
		var thread, id, of []byte
		if err := scan(&thread, &id, &of); err != nil {
			return fmt.Errorf("%w: %w", derivedfile.ErrUseless, err)
		}
		if len(of) == 17 && of[0] == ofSummary {
			id = of[1:]
		}
		switch {
		case len(thread) == 16:
			if n := len(h.Threads); n == 0 || h.Threads[n-1] != lineage.ThreadID(thread) {
				h.Threads = append(h.Threads, lineage.ThreadID(thread))
			}
		case len(id) == 16 && !contexts[lineage.ContextID(id)]:
			contexts[lineage.ContextID(id)] = true
			h.Contexts = append(h.Contexts, lineage.ContextID(id))
		}
		return nil
	}, `WITH RECURSIVE behind (run, seq) AS (
			SELECT ?3, ?4
			UNION SELECT r.number, 0 FROM behind b JOIN runs r ON r.parent = b.run AND r.parent > 0 AND r.after >= b.seq WHERE r.reached > 0),
		seen (thread, id, of) AS (
			SELECT p.thread, CASE WHEN p.thread = 0 THEN p.id END, CASE WHEN p.thread = 0 THEN p.of END
			FROM behind b CROSS JOIN tips p ON p.run = b.run AND p.seq >= b.seq
			UNION SELECT r.thread, NULL, NULL FROM behind b CROSS JOIN runs r ON r.number = b.run JOIN threads h ON h.number = r.thread AND h.keeps)
		SELECT h.id, s.id, s.of FROM seen s LEFT JOIN threads h ON h.number = s.thread
		WHERE `+where+` ORDER BY s.thread, s.id`, f.Thread[:], f.User, p.run, p.seq)
	if err == nil && len(h.Threads)+len(h.Contexts) == 0 {
		err = errStale
	}
	return err
}
