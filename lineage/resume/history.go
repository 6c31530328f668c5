package resume

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/structure"
)

// history is a history whose bodies are read when they are needed.
type history struct {
	store *lineage.Store
	tip   lineage.SpanRef
	spans []lineage.SpanRef
	// index maps a span to its index in spans.
	index map[lineage.SpanRef]int
	most  int64 // Options.MaxMade
}

func readHistory(ctx context.Context, store *lineage.Store, tip lineage.SpanRef) (*history, error) {
	h := &history{store: store, tip: tip, index: make(map[lineage.SpanRef]int)}
	for e, err := range store.History(ctx, tip, lineage.Window{}) {
		if err != nil {
			return nil, err
		}
		if n := len(h.spans); n > 0 && h.spans[n-1] == e.Span {
			continue
		}
		h.index[e.Span] = len(h.spans)
		h.spans = append(h.spans, e.Span)
	}
	if len(h.spans) == 0 {
		return nil, ErrNothing
	}
	return h, nil
}

// sources returns the session files of the threads that the messages belong to, and of another session.
func (h *history) sources(ctx context.Context, a about) (found []*follow.Source, err error) {
	sessions, threads, err := h.sessions(ctx)
	if err != nil {
		return nil, err
	}
	sessions[a.session], threads[a.thread] = true, !a.thread.IsZero()
	for source, err := range follow.Sources(ctx, h.store) {
		switch {
		case errors.Is(err, lineage.ErrCorrupt):
		case err != nil:
			return nil, err
		case source.About.Rows || source.Recorded.Session == "":
		case threads[source.Recorded.Thread], source.Recorded.Thread.IsZero() && sessions[source.Recorded.Session]:
			found = append(found, source)
		}
	}
	return found, nil
}

// sessions returns the threads that the messages belong to, and their source ids.
func (h *history) sessions(ctx context.Context) (sessions map[string]bool, seen map[lineage.ThreadID]bool, err error) {
	sessions, seen = make(map[string]bool), make(map[lineage.ThreadID]bool)
	runs := backend.Runs(ctx, h.store.View())
	for i, span := range h.spans {
		if i > 0 && h.spans[i-1].Run == span.Run {
			continue
		}
		run, err := runs(span.Run)
		if err != nil {
			return nil, nil, err
		}
		if home := run.Home.Thread; !home.IsZero() && !seen[home] {
			seen[home] = true
			a, err := aboutThread(ctx, h.store, home)
			if err != nil && !errors.Is(err, lineage.ErrNotFound) {
				return nil, nil, err
			}
			sessions[a.session] = true
		}
	}
	return sessions, seen, nil
}

// excerpt is a part of a history as messages. For each message it has the index of its span.
type excerpt struct {
	messages []message.Message
	from     []int
	models   []string
}

// read reads the spans of the history between two indexes.
func (h *history) read(ctx context.Context, from, to int, lost func(lineage.Loss)) (*excerpt, error) {
	p := &excerpt{}
	if from >= to {
		return p, nil
	}
	var size int64
	for e, err := range h.store.History(ctx, h.spans[to-1], lineage.Window{From: uint64(from) + 1}) {
		if err != nil {
			return nil, err
		}
		if e.Erased {
			lost(lineage.Loss{Position: e.Position, Reason: "it was erased: left out"})
			continue
		}
		if size += e.Size; size > h.most {
			return nil, fmt.Errorf("history at position %d: more than %d bytes to translate: %w", e.Position, h.most, lineage.ErrTooLarge)
		}
		body, err := h.store.Original(ctx, e)
		if err != nil {
			return nil, err
		}
		for _, m := range e.Messages(body) {
			p.messages, p.from, p.models = append(p.messages, m), append(p.from, h.index[e.Span]), append(p.models, e.Origin.ModelID)
		}
	}
	return p, nil
}

// stored yields the bodies of the messages that are records of the agent, up to the first other one, each with its
// id.
func (h *history) stored(ctx context.Context, own func(raw []byte) bool) iter.Seq2[follow.SourceLine, error] {
	return func(yield func(follow.SourceLine, error) bool) {
		for e, err := range h.store.History(ctx, h.tip, lineage.Window{}) {
			if err != nil {
				yield(follow.SourceLine{}, err)
				return
			}
			if e.Index > 0 {
				yield(follow.SourceLine{}, errElsewhere) // several messages were added together
				return
			}
			if e.Erased || e.Kind != structure.MessageUsage || e.Size > h.most {
				return
			}
			body, err := h.store.Original(ctx, e)
			if notUsable(err) {
				return
			}
			if err != nil {
				yield(follow.SourceLine{}, err)
				return
			}
			info := rawjson.Last(body, "info")
			if !rawjson.Valid(body) || !rawjson.IsObject(info) || !own(body) {
				return
			}
			body = set(body, "info", setText(info, "id", e.SourceID))
			if !yield(follow.SourceLine{Raw: body, Spans: []lineage.SpanRef{e.Span}}, nil) {
				return
			}
		}
	}
}
