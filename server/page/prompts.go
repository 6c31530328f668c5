package page

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/render"
	"github.com/lineage-store/lineage/lineage/transcript"
)

// maxPrompts is the number of prompts of a history that are listed beside it, the last ones.
const maxPrompts = 1000

// promptsView lists the prompts of a whole history.
type promptsView struct {
	Prompts []prompt
	// Rest is set if part of the history has not been read yet. Earlier is set if there are earlier prompts, which are not
	// listed.
	Rest, Earlier bool
}

type prompt struct {
	Position uint64
	Text     string
}

// prompts sends the list of the prompts of a history, as many of the last ones as can be read in the time of a request.
func (p *Page) prompts(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	subject, err := p.subjectOf(r, r.URL.Query().Get("in"))
	if err != nil {
		return err
	}
	length, err := p.o.Store.Position(ctx, subject.Tip)
	if err != nil {
		return err
	}
	signs, err := p.outlines.of(ctx, subject.Tip)
	if err != nil {
		return err
	}
	v := &promptsView{Rest: uint64(len(signs)) < length}
	end := time.Now().Add(outlining)
	for i, s := range slices.Backward(signs) {
		if s != signPrompt {
			continue
		}
		if len(v.Prompts) == maxPrompts || !time.Now().Before(end) {
			v.Earlier = true
			break
		}
		at := uint64(i) + 1
		text, err := p.promptAt(ctx, subject.Tip, at)
		if err != nil {
			return err
		}
		if text != "" {
			v.Prompts = append(v.Prompts, prompt{at, text})
		}
	}
	slices.Reverse(v.Prompts)
	return p.show(w, r, http.StatusOK, "prompts", &pageData{Title: subject.Title, Body: v})
}

// promptAt returns the start of the first prompt at a position of a history, empty if there is none.
func (p *Page) promptAt(ctx context.Context, tip lineage.SpanRef, at uint64) (string, error) {
	for e, err := range p.o.Store.History(ctx, tip, lineage.Window{From: at, To: at}) {
		if err != nil {
			return "", err
		}
		m, err := p.o.Store.Transcribe(ctx, e, preview)
		if err != nil {
			return "", err
		}
		for _, i := range transcript.Items(m, transcript.Options{MaxText: preview}) {
			if i.Kind == transcript.Prompt {
				return words(render.PromptLine(i)), nil
			}
		}
	}
	return "", nil
}
