// Package amount writes numbers, sizes and counts of things for people.
package amount

import "fmt"

// integer is any type that things are counted in.
type integer interface{ ~int | ~int64 | ~uint64 }

// Bytes writes a size: 1.2 MiB.
func Bytes[N integer](n N) string {
	const units = "KMGTPE"
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
