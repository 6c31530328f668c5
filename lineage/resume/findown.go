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
func findOwn(ctx context.Context, h *history, format *sessionFormat, agent follow.Agent, a about) (*ownLines, error) {
	if format.line == nil {
		return nil, nil
	}
	if format.stored != nil {
		o, err := matchOwn(ctx, func(ctx context.Context) iter.Seq2[follow.SourceLine, error] { return h.stored(ctx, format.stored) }, h, format)
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
	return bestOwn(ctx, h, format, sources)
}

// bestOwn returns the lines of the source that has most of the history.
func bestOwn(ctx context.Context, h *history, format *sessionFormat, sources []*follow.Source) (best *ownLines, err error) {
	for _, source := range sources {
		o, err := matchOwn(ctx, source.Lines, h, format)
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
func matchOwn(ctx context.Context, all linesOf, h *history, format *sessionFormat) (*ownLines, error) {
	o := &ownLines{all: all, tree: format.tree, lineOf: make([]int, len(h.spans))}
	for i := range o.lineOf {
		o.lineOf[i] = -1
	}
	for line, err := range all(ctx) {
		if err != nil {
			return nil, err
		}
		l, err := readOwn(&line, format)
		if err != nil {
			return nil, err
		}
		for _, span := range line.Spans {
			i, ok := h.index[span]
			if !ok {
				l.others++
				continue
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

// readOwn reads a line, without its place in a history.
func readOwn(line *follow.SourceLine, format *sessionFormat) (ownLine, error) {
	l := ownLine{last: -1}
	switch {
	case !rawjson.Valid(line.Raw) || !rawjson.IsObject(bytes.TrimSpace(line.Raw)):
		if len(line.Spans) > 0 { // the messages are not on lines of their own
			return l, errOldForm
		}
		return l, nil
	case ambiguous(line.Raw):
		return l, errAmbiguous
	}
	err := format.line(line.Raw, &l)
	return l, err
}
