// Package prices computes the cost of models' answers. It has a dated table of prices by provider and model, and
// exact amounts of money.
//
// The table in the program was made from the data of genai-prices (see LICENSE) by scripts/prices.mjs.
package prices

import (
	"bytes"
	_ "embed" // the table
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage/message"
)

//go:embed data.json
var shipped []byte

// ErrInvalid is returned for a table that cannot be used.
var ErrInvalid = errors.New("invalid prices")

// MaxFile is the maximum size of a table in bytes.
const MaxFile = 64 << 20

// Default returns the table in the program.
var Default = sync.OnceValue(func() *Table {
	t, err := read(shipped)
	if err != nil {
		panic(err) // TestShipped reads the same table
	}
	t.lazy = true
	return t
})

// Table has the prices of models. It is safe for concurrent use.
type Table struct {
	// Source, Version and Date identify the origin of the prices. They may be empty.
	Source, Version, Date string

	providers []*provider
	starts    []int64
	quarters  bool

	lazy  bool // providers are read on demand
	mu    sync.Mutex
	found map[[2]string]*offer // by provider and model
}

// Use is a number of requests to price. They have the same model, tier and time, and such an amount of input that the
// same tier of prices applies to each of them.
type Use struct {
	// Provider and Model are the names in the source. Provider may be empty.
	Provider, Model string
	// Tier is the class of service, empty for the standard one.
	Tier string
	// At is the time of the requests.
	At time.Time
	// Input is the input of one request, of all kinds.
	Input    int64
	Requests int64
	Tokens   message.Tokens
}

// Starts returns the amounts of input above which prices change, in order. Requests between the same two amounts can
// be priced together.
func (t *Table) Starts() []int64 { return t.starts }

// ByQuarter reports whether all prices change at quarters of an hour.
func (t *Table) ByQuarter() bool { return t.quarters }

// Price returns the cost of a use. Tokens whose number is unknown cost nothing. ok is false if there is no price for
// the model or its tier.
func (t *Table) Price(u Use) (cost Money, ok bool) {
	o := t.find(u.Provider, u.Model)
	if o == nil {
		return Money{}, false
	}
	factor := o.of.tiers[u.Tier]
	if u.Tier != "" && factor == nil {
		return Money{}, false
	}
	p := o.at(u.At)
	sum := new(big.Int)
	add := func(n int64, of ...*rate) bool {
		if n == 0 {
			return true
		}
		for _, r := range of {
			if r != nil {
				sum.Add(sum, new(big.Int).Mul(big.NewInt(n), r.after(u.Input)))
				return true
			}
		}
		return false
	}
	n := u.Tokens.Array()
	output := n[message.Output]
	if p.reasoning != nil && n[message.Reasoning] <= output {
		output -= n[message.Reasoning]
		add(n[message.Reasoning], p.reasoning)
	}
	if !add(n[message.Input], p.input) || !add(n[message.CachedInput], p.cacheRead, p.input) || !add(n[message.CacheWrite], p.cacheWrite, p.input) ||
		!add(n[message.CacheWrite1h], p.cacheWrite1h, p.cacheWrite, p.input) || !add(output, p.output) {
		return Money{}, false
	}
	if p.requests != nil {
		add(u.Requests, p.requests)
	}
	if factor != nil {
		sum.Quo(sum.Mul(sum, factor.Num()), factor.Denom())
	}
	return Money{sum}, true
}

// maxFound limits the models that a table caches.
const maxFound = 10_000

// find returns the prices of a model, nil if there are none.
func (t *Table) find(named, model string) *offer {
	key := [2]string{named, model}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, known := t.found[key]; known {
		return o
	}
	o := t.search(named, model)
	if len(t.found) >= maxFound {
		clear(t.found)
	}
	t.found[key] = o
	return o
}

// search finds a model of the named provider, or else of the provider before the slash in its name, or else of the first
// provider whose models have such names.
func (t *Table) search(named, model string) *offer {
	if model == "" {
		return nil
	}
	if named = strings.ToLower(strings.TrimSpace(named)); named != "" {
		i := slices.IndexFunc(t.providers, func(p *provider) bool { return p.id == named })
		if i < 0 {
			i = slices.IndexFunc(t.providers, func(p *provider) bool { return p.named != nil && p.named(named) })
		}
		if i >= 0 {
			if o := t.model(t.providers[i], model); o != nil {
				return o
			}
		}
	}
	if maker, rest, ok := strings.Cut(model, "/"); ok && slices.ContainsFunc(t.providers, func(p *provider) bool { return p.id == maker }) {
		return t.search(maker, rest)
	}
	for _, p := range t.providers {
		if p.serves != nil && p.serves(model) {
			return t.model(p, model)
		}
	}
	return nil
}

// model finds a model of a provider, also among the models of other providers that it offers.
func (t *Table) model(p *provider, model string) *offer {
	for _, o := range t.offers(p) {
		if o.is(model) {
			return o
		}
	}
	for _, id := range p.fallback {
		for _, other := range t.providers {
			if other.id != id || other == p {
				continue
			}
			for _, o := range t.offers(other) {
				if o.is(model) {
					return o
				}
			}
		}
	}
	return nil
}

// offers returns the models of a provider.
func (t *Table) offers(p *provider) []*offer {
	if t.lazy {
		if err := t.load(p); err != nil {
			panic(err) // TestShipped reads all of them
		}
	}
	return p.offers
}

type provider struct {
	id            string
	named, serves matcher
	fallback      []string
	tiers         map[string]*big.Rat
	models        json.RawMessage // nil after they are loaded
	loaded        bool
	offers        []*offer
}

// offer is a model with its prices. If several are in force, the last one counts.
type offer struct {
	of     *provider
	is     matcher
	prices []period
}

// period is the time in which prices are in force: always, from a day on, or at a time of day.
type period struct {
	from     time.Time
	daily    bool
	begin    time.Duration // of the day, UTC
	end      time.Duration
	constant bool
	rates    rates
}

// rates are prices of a token, or of a request, in units of Money.
type rates struct{ input, cacheRead, cacheWrite, cacheWrite1h, output, reasoning, requests *rate }

// rate is a price that may depend on the amount of input. A higher price then applies to all tokens.
type rate struct {
	base  *big.Int
	tiers []tier // by start
}

type tier struct {
	start int64
	price *big.Int
}

func (r *rate) after(input int64) *big.Int {
	price := r.base
	for _, t := range r.tiers {
		if input > t.start {
			price = t.price
		}
	}
	return price
}

// at returns the prices at a time.
func (o *offer) at(when time.Time) *rates {
	when = when.UTC()
	for i := len(o.prices) - 1; i >= 0; i-- {
		p := &o.prices[i]
		day := when.Sub(when.Truncate(24 * time.Hour))
		switch {
		case p.constant, !p.daily && !when.Before(p.from), p.daily && p.begin <= p.end && day >= p.begin && day < p.end,
			p.daily && p.begin > p.end && (day >= p.begin || day < p.end):
			return &p.rates
		}
	}
	return &o.prices[0].rates
}

// Read reads a table: JSON written by scripts/prices.mjs, or the list of providers published by genai-prices.
func Read(from io.Reader) (*Table, error) {
	b, err := io.ReadAll(io.LimitReader(from, MaxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > MaxFile {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrInvalid, MaxFile)
	}
	t, err := read(b)
	if err != nil {
		return nil, err
	}
	t.starts, t.quarters = nil, true
	for _, p := range t.providers {
		if err := t.load(p); err != nil {
			return nil, err
		}
	}
	slices.Sort(t.starts)
	t.starts = slices.Compact(t.starts)
	return t, nil
}

// read reads a table. The models of its providers are read later.
func read(b []byte) (*Table, error) {
	var in struct {
		Source    string         `json:"source"`
		Version   string         `json:"version"`
		Date      string         `json:"date"`
		Starts    []int64        `json:"starts"`
		Providers []jsonProvider `json:"providers"`
	}
	var err error
	if trimmed := bytes.TrimLeft(b, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '[' {
		err = json.Unmarshal(b, &in.Providers)
	} else {
		err = json.Unmarshal(b, &in)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	t := &Table{Source: in.Source, Version: in.Version, Date: in.Date, starts: in.Starts, quarters: true, found: make(map[[2]string]*offer)}
	for i := range in.Providers {
		if err := t.add(&in.Providers[i]); err != nil {
			return nil, err
		}
	}
	if len(t.providers) == 0 {
		return nil, fmt.Errorf("%w: no providers", ErrInvalid)
	}
	return t, nil
}
