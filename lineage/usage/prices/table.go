package prices

import (
	_ "embed" //the table
	"encoding/json"
	"math/big"
	"sync"
	"time"

	"github.com/lineage-store/lineage/lineage/message"
)

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
	provider *provider
	matches  matcher
	prices   []period
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

type jsonProvider struct {
	ID       string                 `json:"id"`
	Serves   json.RawMessage        `json:"model_match"`
	Named    json.RawMessage        `json:"provider_match"`
	Fallback []string               `json:"fallback_model_providers"`
	Tiers    map[string]json.Number `json:"service_tiers"`
	Models   json.RawMessage        `json:"models"`
}

type jsonModel struct {
	ID     string          `json:"id"`
	Match  json.RawMessage `json:"match"`
	Prices json.RawMessage `json:"prices"`
}

// matcher reports whether a name matches.
type matcher func(name string) bool
