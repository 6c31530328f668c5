package lineage

import "unicode/utf8"

// EstimateTokens estimates how many tokens a model sees in a text. It needs no network and no vocabulary:
// four bytes of Latin text are taken for a token, as is each character of scripts
// that tokenizers split finely. It tends to count high rather than low.
func EstimateTokens(text string) int {
	ascii, other := 0, 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			ascii++
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		if r < 0x250 { // accented Latin letters
			ascii += 2
		} else {
			other++
		}
	}
	return (ascii+3)/4 + other
}

// messageOverhead is what wrapping a message costs beside its text.
const messageOverhead = 4
