package resume

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/follow"
)

// findOwn returns the agent's own lines with which a history begins, nil if there are none.
func findOwn(ctx context.Context, h *history, t *sessionFormat, agent follow.Agent, a about) (*ownLines, error) {
	if t.line == nil {
		return nil, nil
	}
	if t.stored != nil {
		o, err := matchOwn(ctx, func(ctx context.Context) iter.Seq2[follow.SourceLine, error] { return h.stored(ctx, t.stored) }, h, t)
		switch {
		case notUsable(err):
			return nil, nil
		case err != nil || !o.cut(len(h.spans)):
			return nil, err
		}
		return o, nil
	}
	sources, err := h.sources(ctx, a)
	if err != nil {
		return nil, err
	}
	sources = slices.DeleteFunc(sources, func(s *follow.Source) bool { return s.About.Agent != "" && s.About.Agent != agent.Name })
	return bestOwn(ctx, h, t, sources)
}

// bestOwn returns the lines of the source that has most of the history.
func bestOwn(ctx context.Context, h *history, t *sessionFormat, sources []*follow.Source) (best *ownLines, err error) {
	for _, source := range sources {
		o, err := matchOwn(ctx, source.Lines, h, t)
		switch {
		case notUsable(err):
		case err != nil:
			return nil, err
		case o.cut(len(h.spans)) && (best == nil || o.upTo > best.upTo):
			best = o
			best.source = source
		}
	}
	return best, nil
}

// matchOwn matches the lines of a source with the messages of a history.
func matchOwn(ctx context.Context, all linesOf, h *history, t *sessionFormat) (*ownLines, error) {
	o := &ownLines{all: all, tree: t.tree, lineOf: make([]int, len(h.spans))}
	for i := range o.lineOf {
		o.lineOf[i] = -1
	}
	for line, err := range all(ctx) {
		if err != nil {
			return nil, err
		}
		l := ownLine{first: -1, last: -1}
		if rawjson.Valid(line.Raw) && rawjson.IsObject(bytes.TrimSpace(line.Raw)) {
			if ambiguous(line.Raw) {
				return nil, errAmbiguous
			}
			if err := t.line(line.Raw, &l); err != nil {
				return nil, err
			}
		} else if len(line.Spans) > 0 { // the messages are not on lines of their own
			return nil, errOldForm
		}
		for _, span := range line.Spans {
			i, ok := h.index[span]
			switch {
			case !ok:
				l.others++
				continue
			case l.first < 0:
				l.first = i
			}
			l.last = max(l.last, i)
			if o.lineOf[i] < 0 {
				o.lineOf[i] = len(o.lines)
			}
		}
		o.lines = append(o.lines, l)
	}
	return o, nil
}
