package export

import (
	"bytes"
	"context"
	"iter"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
)

type history = iter.Seq2[*lineage.Entry, error]

// histories visits the histories of a conversation that say all of it: those
// that no other goes on from, and those that a branch ends, each once. Branches that
// end at one place under different system prompts are as many histories.
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

// ending is where a history ends, and the system prompt in force there.
type ending struct {
	ref    lineage.SpanRef
	prompt string
}

// ends returns the endings to write. It looks at contexts before anything is written,
// for they may be deleted meanwhile.
func (x *exporter) ends(ctx context.Context, conv *conversation) ([]ending, error) {
	t, err := newTree(ctx, x.store, conv.tips)
	if err != nil {
		return nil, err
	}
	var ends []ending
	seen, stands := make(map[ending]bool), make(map[lineage.SpanRef]bool)
	for _, tip := range conv.tips {
		if tip.ref.IsZero() || tip.branch == "" && (stands[tip.ref] || !t.leaf(tip.ref)) {
			continue
		}
		inForce, err := tip.context.Effective(ctx)
		if err != nil {
			return nil, err
		}
		e := ending{ref: tip.ref}
		if inForce.SystemPrompt != nil {
			e.prompt = *inForce.SystemPrompt
		}
		if !seen[e] {
			ends = append(ends, e)
		}
		seen[e], stands[e.ref] = true, true
	}
	return ends, nil
}

// prompted returns a history that begins with a system prompt as a message, unless it
// does so by itself or there is none.
func (x *exporter) prompted(ctx context.Context, prompt string, said history) history {
	if prompt == "" {
		return said
	}
	return func(yield func(*lineage.Entry, error) bool) {
		first := true
		for e, err := range said {
			if first && err == nil {
				first = false
				var there bool
				if there, err = x.saysPrompt(ctx, e, []byte(prompt)); err == nil && !there && !yield(promptEntry(prompt), nil) {
					return
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func promptEntry(prompt string) *lineage.Entry {
	return &lineage.Entry{
		Kind: lineage.Message, Role: "system", Name: "system", Type: content.TypeText, Size: int64(len(prompt)), Body: []byte(prompt),
	}
}

// saysPrompt reports whether an entry is a system message with the text of a prompt.
func (x *exporter) saysPrompt(ctx context.Context, e *lineage.Entry, prompt []byte) (bool, error) {
	if e.Kind != lineage.Message || e.Role != "system" || e.Type == content.TypeJSON || e.Size != int64(len(prompt)) {
		return false, nil
	}
	body, ok, err := x.body(ctx, e)
	return ok && bytes.Equal(body, prompt), err
}
