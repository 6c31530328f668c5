package export

import (
	"bytes"
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

type history = iter.Seq2[*lineage.Entry, error]

// histories visits the histories of a conversation, each once: those that no other history continues, and those at
// the end of a branch. Branches that end at the same span with different system prompts are separate histories.
func (x *exporter) histories(ctx context.Context, conv *conversation, visit func(history) error) error {
	ends, err := x.ends(ctx, conv)
	if err != nil {
		return err
	}
	for _, e := range ends {
		if err := visit(x.prompted(ctx, e.prompt, x.store.History(ctx, e.ref, lineage.Window{}))); err != nil {
			return err
		}
	}
	return nil
}

// ending is the last span of a history, and the system prompt in force there.
type ending struct {
	ref    lineage.SpanRef
	prompt string
}

// ends returns the endings to write.
func (x *exporter) ends(ctx context.Context, conv *conversation) ([]ending, error) {
	t, err := newTree(ctx, x.store, conv.tips)
	if err != nil {
		return nil, err
	}
	var ends []ending
	seen, ended := make(map[ending]bool), make(map[lineage.SpanRef]bool)
	for _, tip := range conv.tips {
		if tip.branch == "" && (ended[tip.ref] || !t.leaf(tip.ref)) {
			continue
		}
		e := ending{tip.ref, tip.prompt}
		if !seen[e] {
			ends = append(ends, e)
		}
		seen[e], ended[e.ref] = true, true
	}
	return ends, nil
}

// prompted returns a history with the system prompt as its first message. It returns the history unchanged if it
// begins with that prompt already or the prompt is empty.
func (x *exporter) prompted(ctx context.Context, prompt string, entries history) history {
	if prompt == "" {
		return entries
	}
	return func(yield func(*lineage.Entry, error) bool) {
		first := true
		for e, err := range entries {
			if first && err == nil {
				first = false
				var there bool
				if there, err = x.saysPrompt(ctx, e, []byte(prompt)); err == nil && !there && !yield(lineage.SystemPrompt(prompt), nil) {
					return
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// saysPrompt reports whether an entry is a system message with the text of the prompt.
func (x *exporter) saysPrompt(ctx context.Context, e *lineage.Entry, prompt []byte) (bool, error) {
	if e.Kind != lineage.Message || e.Role != "system" || e.Type == content.TypeJSON || e.Size != int64(len(prompt)) {
		return false, nil
	}
	body, ok, err := x.body(ctx, e)
	return ok && bytes.Equal(body, prompt), err
}
