package lineage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

// echo summarizes by repeating the beginnings of the passages.
type echo struct{}

func (echo) Summarize(_ context.Context, passages []lineage.Passage) (lineage.SummaryText, error) {
	var words []string
	for _, p := range passages {
		word, _, _ := strings.Cut(p.Text, " ")
		words = append(words, fmt.Sprintf("%s:%s", p.Role, word))
	}
	return lineage.SummaryText{Text: strings.Join(words, ","), Model: "echo"}, nil
}

// terse summarizes everything in two words.
type terse struct{}

func (terse) Summarize(_ context.Context, passages []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{Text: fmt.Sprintf("%d passages", len(passages)), Model: "terse"}, nil
}

var errNoModel = errors.New("no model")

type failing struct{}

func (failing) Summarize(context.Context, []lineage.Passage) (lineage.SummaryText, error) {
	return lineage.SummaryText{}, errNoModel
}

func (failing) Embed(context.Context, string) ([]float32, error) { return nil, errNoModel }

// length embeds a text as its length.
type length struct{}

func (length) Embed(_ context.Context, text string) ([]float32, error) {
	return []float32{float32(len(text)), -0.5}, nil
}
