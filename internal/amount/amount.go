// Package amount writes numbers, sizes and counts of things for people, and reads sizes that they write.
package amount

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// integer is any type that things are counted in.
type integer interface{ ~int | ~int64 | ~uint64 }

// units are the first letters of KiB, MiB and so on.
const units = "KMGTPE"

var errSize = errors.New("must be a size such as 512MiB, or a number of bytes")

// ParseBytes reads a size: 1.5 MiB, 1GiB or, in bytes, 4096.
func ParseBytes(text string) (int64, error) {
	for i, unit := range units {
		number, ok := strings.CutSuffix(text, string(unit)+"iB")
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSuffix(number, " "), 64)
		if n *= math.Pow(1024, float64(i+1)); err != nil || !(n >= 0 && n < math.MaxInt64) {
			return 0, errSize
		}
		return int64(n), nil
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(text, " B"), 10, 63)
	if err != nil {
		return 0, errSize
	}
	return int64(n), nil
}

// Bytes writes a size: 1.2 MiB.
func Bytes[N integer](n N) string {
	if n < 1024 {
		return fmt.Sprint(n) + " B"
	}
	value, unit := float64(n)/1024, 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

// Count writes a number with commas between thousands.
func Count[N integer](n N) string {
	s := fmt.Sprint(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(s) - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural writes a count of things: 1 message, 2 messages.
func Plural[N integer](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	switch {
	case thing == "branch":
		thing = "branche"
	case len(thing) > 1 && thing[len(thing)-1] == 'y' && thing[len(thing)-2] != 'a':
		thing = thing[:len(thing)-1] + "ie"
	}
	return Count(n) + " " + thing + "s"
}
