package message

// TokenKind is a kind of tokens. The kinds are disjoint, except that Reasoning is a part of Output.
type TokenKind int

const (
	// Input is input that was neither read from a cache nor written to one.
	Input TokenKind = iota
	// CachedInput is input that was read from a cache.
	CachedInput
	// CacheWrite is input written to a cache for the usual time, which is five minutes for Anthropic.
	CacheWrite
	// CacheWrite1h is input written to a cache for an hour.
	CacheWrite1h
	// Output is everything that the model wrote, including reasoning.
	Output
	// Reasoning is the part of the output that is reasoning.
	Reasoning
	// TokenKinds is the number of kinds.
	TokenKinds
)

// Tokens are numbers of tokens by kind. In the zero value no number is known.
type Tokens struct {
	counts [TokenKinds]int64
	known  uint8
}

// maxTokens is the largest number of tokens that is accepted.
const maxTokens = 1_000_000_000_000

// Get returns the number of tokens of a kind. ok is false if it is not known.
func (t *Tokens) Get(k TokenKind) (n int64, ok bool) { return t.counts[k], t.known&(1<<k) != 0 }

// Set sets the number of tokens of a kind.
func (t *Tokens) Set(k TokenKind, n int64) {
	t.counts[k] = n
	t.known |= 1 << k
}

// Known returns the set of known kinds: bit k is set for kind k.
func (t *Tokens) Known() uint8 { return t.known }

// MakeTokens returns tokens in which a set of kinds is known.
func MakeTokens(counts [TokenKinds]int64, known uint8) Tokens {
	return Tokens{counts, known & (1<<TokenKinds - 1)}
}

// Array returns the numbers by kind, 0 for those that are not known.
func (t *Tokens) Array() [TokenKinds]int64 { return t.counts }

// Sums returns the input of all kinds and the output.
func (t *Tokens) Sums() (input, output int64) {
	return t.counts[Input] + t.counts[CachedInput] + t.counts[CacheWrite] + t.counts[CacheWrite1h], t.counts[Output]
}

// Since returns the tokens between an earlier counter and this one. ok is false if the counter has decreased.
func (t *Tokens) Since(before *Tokens) (d Tokens, ok bool) {
	for k := range TokenKinds {
		n, found := t.Get(k)
		was, had := before.Get(k)
		switch {
		case !found:
			continue
		case !had:
			was = 0
		case n < was:
			return Tokens{}, false
		}
		d.Set(k, n-was)
	}
	return d, true
}
