package query

import (
	"sort"
	"strings"

	"github.com/lineage-store/lineage/lineage/transcript"
)

// snippetWords is the number of words in a snippet.
const snippetWords = 32

// Snippet returns the part of a text with the most hits, which are marked by
// <mark> and </mark>.
func Snippet(text string, words []Word, found [][]Hit) string {
	marked := make([]bool, len(words))
	joined := make([]bool, len(words)) // with the previous word, by one phrase
	var starts []int
	for _, hits := range found {
		for _, h := range hits {
			starts = append(starts, h.at)
			for i := range h.length {
				marked[h.at+i] = true
				joined[h.at+i] = joined[h.at+i] || i > 0
			}
		}
	}
	if len(words) == 0 {
		return ""
	}
	from := bestWindow(starts, len(words))
	to := min(from+snippetWords, len(words))
	var b strings.Builder
	at := 0
	if from > 0 {
		b.WriteString("...")
		at = words[from].Start
	}
	for i := from; i < to; i++ {
		w := words[i]
		begins := marked[i] && (i == from || !joined[i])
		ends := marked[i] && (i+1 == to || !joined[i+1])
		if begins {
			b.WriteString(text[at:w.Start] + "<mark>")
			at = w.Start
		}
		if ends {
			b.WriteString(text[at:w.End] + "</mark>")
			at = w.End
		}
	}
	if to < len(words) {
		b.WriteString(text[at:words[to-1].End] + "...")
	} else {
		b.WriteString(text[at:])
	}
	return b.String()
}

// Snippet returns a snippet of what somebody wrote in a message, the passages without a label, if they match by themselves; else
// of a passage with a label, with the label before it; else of all passages. It is empty if they do not match.
func (m *Matcher) Snippet(passages []transcript.Passage) string {
	written, all := textsOf(passages)
	if text, words, matches := m.MatchPieces(written); matches {
		return Snippet(text, words, m.Found)
	}
	for _, p := range passages {
		if p.Label == "" {
			continue
		}
		if text, words, matches := m.MatchPieces([]string{p.Text}); matches {
			return p.Label + Snippet(text, words, m.Found)
		}
	}
	if text, words, matches := m.MatchPieces(all); matches {
		return Snippet(text, words, m.Found)
	}
	return ""
}

// Beginning returns the beginning of what somebody wrote in a message, or of what a program added if there is nothing else.
func Beginning(passages []transcript.Passage) string {
	written, all := textsOf(passages)
	if written == nil {
		written = all
	}
	text := strings.Join(written, "\n")
	return Snippet(text, Words(text), nil)
}

// textsOf returns the texts that somebody wrote, and all texts with their labels.
func textsOf(passages []transcript.Passage) (written, all []string) {
	for _, p := range passages {
		if all = append(all, p.Label+p.Text); p.Label == "" {
			written = append(written, p.Text)
		}
	}
	return written, all
}

// bestWindow returns the first word of the window with the most hits. Hits are a
// few words after its start.
func bestWindow(starts []int, words int) int {
	sort.Ints(starts)
	best, most := 0, 0
	for i, at := range starts {
		from := max(0, min(at-4, words-snippetWords))
		n := sort.SearchInts(starts, from+snippetWords) - i
		if n > most {
			best, most = from, n
		}
	}
	return best
}
