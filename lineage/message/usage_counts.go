package message

import (
	"math"
	"strconv"
)

// counts are the numbers in an object, nil if it does not have them.
type counts struct {
	input, output, total, cached, written, reasoning, tool *int64
	apart                                                  bool // input does not include cached tokens
}

// outputApart adds the reasoning to the output if the output does not include it. Some programs include it and others
// do not, so the total decides if there is one.
func (c *counts) outputApart() {
	if c.output == nil || c.reasoning == nil {
		return
	}
	if c.total != nil {
		rest := *c.total - *c.output
		for _, n := range []*int64{c.input, c.tool} {
			if n != nil {
				rest -= *n
			}
		}
		if c.apart {
			for _, n := range []*int64{c.cached, c.written} {
				if n != nil {
					rest -= *n
				}
			}
		}
		if rest < *c.reasoning {
			return
		}
	}
	sum := *c.output + *c.reasoning
	c.output = &sum
}

// into sets the tokens.
func (c *counts) into(t *Tokens) {
	if c.input != nil {
		input := *c.input
		if c.tool != nil {
			input += *c.tool
		}
		if rest := input - value(c.cached) - value(c.written); !c.apart && rest >= 0 {
			input = rest
		}
		t.Set(Input, input)
	}
	for _, counted := range []struct {
		kind TokenKind
		n    *int64
	}{{CachedInput, c.cached}, {CacheWrite, c.written}, {Output, c.output}, {Reasoning, c.reasoning}} {
		if counted.n != nil {
			t.Set(counted.kind, *counted.n)
		}
	}
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// first returns the number in the first member that is one, nil if there is none.
func first(f pairs, keys ...string) *int64 {
	for _, key := range keys {
		if n, ok := number(f.get(key)); ok {
			return &n
		}
	}
	return nil
}

// number reads a number of tokens. It returns false for fractions, negative numbers and numbers above maxTokens.
func number(raw []byte) (int64, bool) {
	if len(raw) == 0 {
		return 0, false
	}
	if len(raw) <= 12 { // almost always
		n, digits := int64(0), true
		for _, c := range raw {
			n, digits = 10*n+int64(c-'0'), digits && '0' <= c && c <= '9'
		}
		if digits {
			return n, true
		}
	}
	if c := raw[0]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > maxTokens {
			return 0, false
		}
		n = int64(f)
	}
	return n, n >= 0 && n <= maxTokens
}

// cost returns a number as it is written, empty if it cannot be a cost.
func cost(raw []byte) string {
	if len(raw) == 0 || len(raw) > 64 {
		return ""
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err != nil || f < 0 || f > 1e9 || math.IsNaN(f) || f != 0 && f < 1e-18 {
		return ""
	}
	return string(raw)
}
