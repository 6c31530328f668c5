package summarize

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lineage-store/lineage/lineage"
)

// Extractive summarizes by quoting. It selects the sentences that are most specific to the
// conversation, in order and with the speaker: the first question, the last conclusions, decisions,
// errors, names and numbers. It is deterministic and takes linear time.
//
// It understands Markdown markup. Its only knowledge of languages are lists of common words. Of a
// text above 512 KiB it reads the beginning and the end.
type Extractive struct {
	// MaxTokens limits the summary, by lineage.EstimateTokens. Default: a fifth of the input, at
	// least 120 and at most 1,000.
	MaxTokens int
}

var _ lineage.Summarizer = Extractive{}

const (
	maxRead = 512 << 10
	maxName = 40 // characters of a speaker's name
)

// Summarize implements lineage.Summarizer. If no passage has text, or all are absent, the error is
// ErrNoText.
func (x Extractive) Summarize(ctx context.Context, passages []lineage.Passage) (lineage.SummaryText, error) {
	var all []*sentence
	for i, p := range passages {
		if ctx.Err() != nil {
			return lineage.SummaryText{}, context.Cause(ctx)
		}
		all = append(all, sentencesOf(i, p)...)
	}
	if len(all) == 0 || !anyAtHand(passages) {
		return lineage.SummaryText{}, ErrNoText
	}
	budget := x.budget(passages)
	ranking, weight := rate(all, len(passages))
	best := all[0] // if no sentence has words
	if len(ranking) > 0 {
		best = ranking[0].sentence
	}
	chosen := choose(ranking, weight, budget)
	if len(chosen) == 0 {
		return lineage.SummaryText{Text: shorten(best.text, budget), Model: "extractive"}, nil
	}
	return lineage.SummaryText{Text: render(chosen), Model: "extractive"}, nil
}

// anyAtHand reports whether any passage has its text rather than a note.
func anyAtHand(passages []lineage.Passage) bool {
	return slices.ContainsFunc(passages, func(p lineage.Passage) bool { return !p.Absent })
}

func (x Extractive) budget(passages []lineage.Passage) int {
	if x.MaxTokens > 0 {
		return x.MaxTokens
	}
	total := 0
	for _, p := range passages {
		total += lineage.EstimateTokens(p.Text)
	}
	return min(max(total/5, 120), 1000)
}

func sentencesOf(passage int, p lineage.Passage) []*sentence {
	label := p.Role
	if p.Name != "" && p.Name != p.Role {
		label += " " + p.Name
	}
	label = strings.Join(strings.Fields(clean(label)), " ")
	if utf8.RuneCountInString(label) > maxName {
		label = string([]rune(label)[:maxName]) + "…"
	}
	if label != "" {
		label += ": "
	}
	if p.Summary {
		label = ""
	}
	var out []*sentence
	for i, text := range split(excerpt(p.Text)) {
		out = append(out, &sentence{passage: passage, role: p.Role, label: label, text: text, first: i == 0, summary: p.Summary})
	}
	return out
}

// excerpt returns the beginning and end of a text that is too long.
func excerpt(text string) string {
	if len(text) <= maxRead {
		return clean(text)
	}
	return clean(text[:maxRead/2]) + "\n" + clean(text[len(text)-maxRead/2:])
}

// clean replaces broken UTF-8 and control characters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return ' '
		}
		return r // utf8.RuneError for a broken byte
	}, text)
}

// render writes sentences in order, those of a passage in one line.
func render(chosen []*sentence) string {
	var b strings.Builder
	for i, s := range chosen {
		switch {
		case i == 0:
			b.WriteString(s.label)
		case chosen[i-1].passage == s.passage:
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
			b.WriteString(s.label)
		}
		b.WriteString(s.text)
	}
	return b.String()
}

// shorten returns the beginning of a text that fits the budget, at least one character.
func shorten(text string, budget int) string {
	end := 0
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		if lineage.EstimateTokens(text[:next]) > budget {
			break
		}
		end = next
	}
	return strings.TrimSpace(text[:end])
}
