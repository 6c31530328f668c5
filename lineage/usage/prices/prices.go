// Package prices computes the cost of models' answers. It has a dated table of prices by provider and model, and
// exact amounts of money.
//
// The table in the program was made from the data of genai-prices (see LICENSE) by scripts/prices.mjs.
package prices

import (
	"bytes"
	_ "embed" // the table
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"sync"

	"github.com/lineage-store/lineage/lineage/message"
)

//go:embed data.json
var shipped []byte

// MaxFile is the maximum size of a table in bytes.
const MaxFile = 64 << 20

// Date is the date of the table in the program. It is stated here so that help can tell it without reading the table.
const Date = "2026-09-23"

// Default returns the table in the program.
var Default = sync.OnceValue(func() *Table {
	t, err := read(shipped)
	if err != nil {
		panic(err) // TestShipped reads the same table
	}
	t.lazy = true
	return t
})

// Price returns the cost of a use. Tokens whose number is unknown cost nothing. ok is false if there is no price for
// the model or its tier.
func (t *Table) Price(u Use) (cost Money, ok bool) {
	o := t.find(u.Provider, u.Model)
	if o == nil {
		return Money{}, false
	}
	factor := o.provider.tiers[u.Tier]
	if u.Tier != "" && factor == nil {
		return Money{}, false
	}
	p := o.at(u.At)
	sum := new(big.Int)
	add := func(n int64, choices ...*rate) bool {
		if n == 0 {
			return true
		}
		for _, r := range choices {
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
		if o.matches(model) {
			return o
		}
	}
	for _, id := range p.fallback {
		for _, other := range t.providers {
			if other.id != id || other == p {
				continue
			}
			for _, o := range t.offers(other) {
				if o.matches(model) {
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
