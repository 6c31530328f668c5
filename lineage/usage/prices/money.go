package prices

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// scale is the number of decimals of Money. Prices are in dollars per million tokens, with up to 18 decimals.
const scale = 24

var unit = new(big.Int).Exp(big.NewInt(10), big.NewInt(scale), nil)

// Money is an exact amount of dollars. The zero value is zero. It may be copied.
type Money struct{ n *big.Int } // in 10^-24 dollars

// ParseMoney reads a decimal number of dollars in JSON syntax. Decimals after the 24th are cut off.
func ParseMoney(decimal string) (Money, error) {
	r, err := parse(decimal)
	if err != nil {
		return Money{}, err
	}
	n := r.Mul(r, new(big.Rat).SetInt(unit))
	return Money{new(big.Int).Quo(n.Num(), n.Denom())}, nil
}

// parse reads a decimal number within a plausible range.
func parse(decimal string) (*big.Rat, error) {
	f, err := strconv.ParseFloat(decimal, 64)
	switch {
	case err != nil, len(decimal) > 64, f < 0, math.IsNaN(f), f > 1e9, f != 0 && f < 1e-18, strings.ContainsAny(decimal, "xXpP_/iIn"):
		return nil, fmt.Errorf("%w: %.64q is no amount", ErrInvalid, decimal)
	case f == 0:
		return new(big.Rat), nil // the exponent may have any value
	}
	r, ok := new(big.Rat).SetString(decimal)
	if !ok {
		return nil, fmt.Errorf("%w: %.64q is no amount", ErrInvalid, decimal)
	}
	return r, nil
}

// Add returns the sum.
func (m Money) Add(more Money) Money {
	switch {
	case m.n == nil:
		return more
	case more.n == nil:
		return m
	}
	return Money{new(big.Int).Add(m.n, more.n)}
}

// IsZero reports whether the amount is zero.
func (m Money) IsZero() bool { return m.n == nil || m.n.Sign() == 0 }

// String returns all decimals.
func (m Money) String() string {
	s := m.Fixed(scale)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// Fixed returns the amount with a number of decimals, rounded half up.
func (m Money) Fixed(decimals int) string {
	n := new(big.Int)
	if m.n != nil {
		n.Set(m.n)
	}
	if decimals < scale {
		step := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-decimals)), nil)
		n.Add(n, new(big.Int).Rsh(step, 1))
		n.Quo(n, step)
	}
	s := n.String()
	if len(s) <= decimals {
		s = strings.Repeat("0", decimals-len(s)+1) + s
	}
	if decimals == 0 {
		return s
	}
	return s[:len(s)-decimals] + "." + s[len(s)-decimals:]
}

// MarshalJSON writes a number with all decimals.
func (m Money) MarshalJSON() ([]byte, error) { return []byte(m.String()), nil }

// Pico returns the amount in 10^-12 dollars, rounded down. ok is false if it is too large.
func (m Money) Pico() (n int64, ok bool) {
	if m.n == nil {
		return 0, true
	}
	q := new(big.Int).Quo(m.n, big.NewInt(1e12))
	return q.Int64(), q.IsInt64()
}

// FromPico returns an amount given in 10^-12 dollars.
func FromPico(n int64) Money { return Money{new(big.Int).Mul(big.NewInt(n), big.NewInt(1e12))} }
