package main

import (
	"fmt"
	"strconv"
	"strings"
)

// parseCount reads a number of things, such as 1000, 10k or 10M.
func parseCount(s string) (int, error) {
	digits, times := s, 1
	switch {
	case strings.HasSuffix(s, "k"):
		digits, times = s[:len(s)-1], 1_000
	case strings.HasSuffix(s, "M"):
		digits, times = s[:len(s)-1], 1_000_000
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number such as 1000, 10k or 10M", s)
	}
	return int(n) * times, nil
}

// countFlag is a flag with a number.
type countFlag struct{ to *int }

func (f countFlag) String() string {
	if f.to == nil || *f.to == 0 {
		return ""
	}
	return strconv.Itoa(*f.to)
}

func (f countFlag) Set(s string) (err error) {
	*f.to, err = parseCount(s)
	return err
}

func (countFlag) Type() string { return "count" }

// countsFlag is a flag with numbers, apart by commas.
type countsFlag struct{ to *[]int }

func (f countsFlag) String() string {
	if f.to == nil {
		return ""
	}
	var all []string
	for _, n := range *f.to {
		all = append(all, strconv.Itoa(n))
	}
	return strings.Join(all, ",")
}

func (f countsFlag) Set(s string) error {
	for part := range strings.SplitSeq(s, ",") {
		n, err := parseCount(part)
		if err != nil {
			return err
		}
		*f.to = append(*f.to, n)
	}
	return nil
}

func (countsFlag) Type() string { return "counts" }
