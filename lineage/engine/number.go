package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// formatNumber returns a number in JSON syntax, without loss: integers in full, json.Number
// unchanged, floats with the shortest exact digits and an exponent only below 1e-6 and from 1e21
// on. -0 is 0. ok is false if data is not a finite number.
func formatNumber(data any) (string, bool) {
	switch d := data.(type) {
	case int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprintf("%d", d), true
	case float64:
		return formatFloat(d, 64)
	case float32:
		return formatFloat(float64(d), 32)
	case json.Number:
		if !isNumber(string(d)) {
			return "", false
		}
		if isNegativeZero(string(d)) {
			return "0", true
		}
		return string(d), true
	}
	return "", false
}

// isNegativeZero reports whether a number in JSON syntax is -0.
func isNegativeZero(number string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	return mantissa[0] == '-' && strings.Trim(mantissa[1:], "0.") == ""
}

func formatFloat(f float64, bits int) (string, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", false
	}
	if f == 0 {
		return "0", true
	}
	format := byte('f')
	if abs := math.Abs(f); abs < 1e-6 || abs >= 1e21 {
		format = 'e'
	}
	text := strconv.FormatFloat(f, format, -1, bits)
	if mantissa, exponent, ok := strings.Cut(text, "e"); ok { // 1e-7, not 1e-07
		text = mantissa + "e" + exponent[:1] + strings.TrimLeft(exponent[1:], "0")
	}
	return text, true
}

// isNumber reports whether s is exactly one number in JSON syntax.
func isNumber(s string) bool {
	if s == "" || s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	last := s[len(s)-1]
	return last >= '0' && last <= '9' && json.Valid([]byte(s))
}
