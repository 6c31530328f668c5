package summarize

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

const (
	// maxCandidates limits the number of candidates, because each is compared with those already
	// chosen.
	maxCandidates = 2000
	// minShare is the fraction of the best score below which a sentence is not worth its space.
	minShare = 0.2
)

// sentence is a candidate for a summary.
type sentence struct {
	passage int    // which passage it is from
	role    string // who said it: user, assistant, tool, ...
	label   string // prefix of the quotation
	text    string
	first   bool // of its passage
	summary bool // of an earlier summary
}

// candidate is a sentence with words.
type candidate struct {
	*sentence
	order int     // index among all sentences
	words []int32 // numbers of its words, sorted
	cost  int     // tokens, including the line end
	// factor weights its words by speaker and position.
	factor float64
	score  float64 // given the sentences chosen so far
}

// vocabulary numbers words in order of first appearance, so that sums over words are deterministic.
type vocabulary struct {
	number map[string]int32
	words  []wordUse
}

type wordUse struct {
	sentences  int // number of sentences with the word
	share, cue float64
}

func (v *vocabulary) add(text string) []int32 {
	var out []int32
	for _, w := range words(text) {
		n, known := v.number[w]
		if !known {
			n = int32(len(v.words))
			v.number[w] = n
			v.words = append(v.words, wordUse{share: shareOf(w), cue: cues[w]})
		}
		out = append(out, n)
	}
	slices.Sort(out)
	out = slices.Clip(slices.Compact(out))
	for _, n := range out {
		v.words[n].sentences++
	}
	return out
}

// weights rates words: those that are frequent in the conversation but in few sentences.
func (v *vocabulary) weights(sentences int) []float64 {
	weight := make([]float64, len(v.words))
	for i, w := range v.words {
		n := float64(w.sentences)
		weight[i] = w.share * math.Log1p(n) * math.Log(1+float64(sentences)/n)
	}
	return weight
}

// rate ranks the sentences by their words and positions. It returns the best candidates, in order,
// and the weights of words.
func rate(sentences []*sentence, passages int) (all []*candidate, weight []float64) {
	v := &vocabulary{number: make(map[string]int32)}
	for i, s := range sentences {
		if in := v.add(s.text); len(in) > 0 {
			all = append(all, &candidate{sentence: s, order: i, words: in, cost: lineage.EstimateTokens(s.text + "\n")})
		}
	}
	weight = v.weights(len(sentences))
	opening := -1 // the first passage of the conversation
	if i := slices.IndexFunc(sentences, func(s *sentence) bool { return s.role != "system" }); i >= 0 {
		opening = sentences[i].passage
	}
	for _, c := range all {
		c.factor = placed(c.sentence, opening, passages) * marked(c.text)
		cue := 0.0
		for _, w := range c.words {
			cue += v.words[w].cue
		}
		c.factor *= 1 + 0.3*min(cue, 5)
		c.rescore(weight)
	}
	slices.SortFunc(all, bestFirst)
	return all[:min(len(all), maxCandidates)], weight
}

// bestFirst compares candidates by score, equal ones by position.
func bestFirst(a, b *candidate) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.order, b.order))
}

// placed rates a sentence by speaker and position.
func placed(s *sentence, opening, passages int) float64 {
	factor := 1.0
	if s.first {
		factor *= 1.2
	}
	if s.passage == opening || s.passage >= passages-2 {
		factor *= 1.4 // the beginning and the current end
	}
	switch {
	case s.summary:
		factor *= 1.5
	case s.role == "user":
		factor *= 1.25
	case s.role == "tool":
		factor *= 0.6
	case s.role == "system":
		factor *= 0.3 // system prompts are part of every request
	}
	if s.role != "user" && strings.HasSuffix(s.text, "?") {
		factor *= 0.7
	}
	return factor
}

// marked rates a sentence by characters that indicate its content.
func marked(text string) float64 {
	factor := 1.0
	if strings.ContainsAny(text, "0123456789") {
		factor *= 1.1
	}
	if strings.ContainsAny(text, "`/_=") {
		factor *= 1.05 // a name, a path, a setting
	}
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		factor *= 0.4 // data
	}
	if slices.ContainsFunc(announcements, func(start string) bool { return strings.HasPrefix(text, start) }) {
		factor *= 0.5
	}
	return factor
}

func (c *candidate) rescore(weight []float64) {
	sum := 0.0
	for _, w := range c.words {
		sum += weight[w]
	}
	c.score = c.factor * sum / math.Pow(float64(c.cost)+6, 0.65) // reduces the advantage of long sentences
}

// choose returns the best sentences that fit, in order. The weight of a word is halved each time it
// is used, so that later sentences add something new. The ranking and the weights are consumed.
func choose(ranking []*candidate, weight []float64, budget int) []*sentence {
	if len(ranking) == 0 {
		return nil
	}
	least := minShare * ranking[0].score
	var chosen []*candidate
	quoted := make(map[int]bool) // passages
	for len(ranking) > 0 {
		best := ranking[0]
		before := best.score
		if best.rescore(weight); best.score < before {
			// Scores only decrease: the first with an unchanged score is the best.
			at, _ := slices.BinarySearchFunc(ranking[1:], best, bestFirst)
			copy(ranking, ranking[1:at+1])
			ranking[at] = best
			continue
		}
		if best.score < least {
			break
		}
		ranking = ranking[1:]
		cost := best.cost
		if !quoted[best.passage] {
			cost += lineage.EstimateTokens(best.label)
		}
		if cost > budget || slices.ContainsFunc(chosen, func(c *candidate) bool { return alike(c, best) }) {
			continue
		}
		budget -= cost
		quoted[best.passage] = true
		chosen = append(chosen, best)
		for _, w := range best.words {
			weight[w] /= 2
		}
	}
	slices.SortFunc(chosen, func(a, b *candidate) int { return cmp.Compare(a.order, b.order) })
	var out []*sentence
	for _, c := range chosen {
		out = append(out, c.sentence)
	}
	return out
}

// alike reports whether two sentences have nearly the same words. A "not" or another number is
// usually enough of a difference.
func alike(a, b *candidate) bool {
	shared := 0
	for _, w := range a.words {
		if _, found := slices.BinarySearch(b.words, w); found {
			shared++
		}
	}
	return float64(shared) > 0.8*float64(len(a.words)+len(b.words)-shared)
}
