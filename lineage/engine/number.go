package engine

import (
	"encoding/json"
	"strings"
)

// formatNumber returns a number in JSON syntax, without loss: integers in full, json.Number
// unchanged, floats with the shortest exact digits and an exponent only below 1e-6 and from 1e21
// on. -0 is 0. ok is false if the number is not finite or not valid.
func formatNumber(number any) (text string, ok bool) {
	b, err := json.Marshal(number)
	if err != nil || number == json.Number("") {
		return "", false
	}
	text = string(b)
	if mantissa, _, _ := strings.Cut(strings.ToLower(text), "e"); mantissa[0] == '-' && strings.Trim(mantissa[1:], "0.") == "" {
		return "0", true
	}
	return text, true
}
