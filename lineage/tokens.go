package lineage

import "unicode/utf8"

// EstimateTokens estimates the number of tokens of a text, without network or vocabulary: a token
// is four bytes of Latin text, or one character of scripts that tokenizers split finely. The
// estimate tends to be high.
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
