package summarize

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// words returns the significant words of a sentence in lower case, without very common and very
// short ones. Scripts without spaces yield each pair of adjacent characters.
func words(s string) []string {
	var out []string
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_' && r != '\''
	}) {
		if unspaced(w) {
			out = append(out, pairs(w)...)
			continue
		}
		w = strings.Trim(w, "'_")
		if w == "" || common[w] || utf8.RuneCountInString(w) < 3 && !strings.ContainsAny(w, "0123456789") {
			continue
		}
		out = append(out, w)
	}
	return out
}

func unspaced(word string) bool {
	return strings.ContainsFunc(word, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
	})
}

// shareOf returns the weight of a word: 0.5 for a pair, because half the pairs span two words.
func shareOf(word string) float64 {
	if unspaced(word) {
		return 0.5
	}
	return 1
}

func pairs(word string) []string {
	var out []string
	before := 0
	for i, r := range word {
		if i > 0 {
			if p := word[before : i+utf8.RuneLen(r)]; !common[p] {
				out = append(out, p)
			}
		}
		before = i
	}
	return out
}

func setOf(list string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

// common are words that are not specific to any conversation.
var common = setOf(`
	the and for that this with you your are was were have has had but from they them their there here what when
	where which who how why can could would will shall may might about into over under than then also just like some
	any all each other more most very much many such its it's i'm i'll i've i'd you're we're that's don't does did
	doing been being let lets let's please thanks thank yes okay sure well now one two out off our ours his her hers
	she him get got make made use used using great good nice perfect hello want only still too again

	der die das den dem des ein eine einen einem einer und oder aber auch noch nur ist sind war wird werden wurde
	haben hat hatte ich sie wir ihr ihnen mir mich uns mit von vom für auf aus bei nach zum zur über unter dass wenn dann
	wie was wer schon sehr kann können soll bitte danke hier dort mal gerne gut als ja nein

	les des une est pas pour que qui dans sur avec vous nous sont par plus mais cette ces

	los las una por para con del que como más pero sus está esto este esta

	一个 我们 你们 他们 这个 那个 可以 什么 怎么 就是 还是 如果 因为 所以 但是 谢谢 好的 一下 的话 是的 不是 也是 都是 了吗 您好`)

// cues are words that indicate a topic or conclusion.
var cues = map[string]float64{
	"decided": 2, "decide": 2, "decision": 2, "conclusion": 2, "agreed": 2, "must": 1, "should": 1, "need": 1, "needs": 1,
	"because": 1, "cause": 1.5, "error": 1.5, "failed": 1.5, "fails": 1.5, "bug": 1.5, "fixed": 1.5, "fix": 1, "solution": 1.5,
	"result": 1.5, "found": 1, "answer": 1.5, "important": 1.5, "todo": 1.5, "next": 1, "instead": 1, "never": 1,
	"always": 1, "deadline": 1.5, "confirmed": 1.5, "cancelled": 1.5, "booked": 1.5, "done": 1, "remaining": 1, "prefer": 1,

	"entschieden": 2, "beschlossen": 2, "entscheidung": 2, "fehler": 1.5, "gebucht": 1.5, "bestätigt": 1.5, "wichtig": 1.5,
	"muss": 1, "müssen": 1, "weil": 1, "lösung": 1.5, "ergebnis": 1.5, "stattdessen": 1, "immer": 1, "niemals": 1,

	"决定": 2, "结论": 2, "错误": 1.5, "失败": 1.5, "修复": 1.5, "原因": 1.5, "确认": 1.5, "预订": 1.5, "重要": 1.5, "需要": 1, "必须": 1,
}

// announcements are beginnings of sentences that announce something which follows in the
// conversation.
var announcements = []string{"I'll ", "I’ll ", "Let me ", "Let's ", "I'd be happy", "I’d be happy", "Here is ", "Here's ", "Here are "}

// failures are words in lines of code and output that report a problem.
var failures = setOf("error panic fatal failed failure fail exception traceback undefined")

// abbreviations are words after which a full stop does not end a sentence.
var abbreviations = setOf("mr mrs ms dr prof st nr vs bzw ca inkl evtl ggf approx fig")
