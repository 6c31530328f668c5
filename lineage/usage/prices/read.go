package prices

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
)

type jsonPeriod struct {
	Constraint *struct {
		Type      string `json:"type"`
		StartDate string `json:"start_date"`
		StartTime string `json:"start_time"`
		EndTime   string `json:"end_time"`
	} `json:"constraint"`
	Prices map[string]json.RawMessage `json:"prices"`
}

// add adds a provider.
func (t *Table) add(in *jsonProvider) (err error) {
	p := &provider{id: strings.ToLower(in.ID), fallback: in.Fallback, tiers: make(map[string]*big.Rat)}
	defer func() {
		if err != nil {
			err = fmt.Errorf("provider %.64q: %w", in.ID, err)
		}
	}()
	if p.serves, err = readMatch(in.Serves, 0); err != nil {
		return err
	}
	if p.named, err = readMatch(in.Named, 0); err != nil {
		return err
	}
	for name, factor := range in.Tiers {
		if p.tiers[name], err = parse(factor.String()); err != nil {
			return err
		}
	}
	p.models = in.Models
	t.providers = append(t.providers, p)
	return nil
}

// load reads the models of a provider, unless they are loaded already.
func (t *Table) load(p *provider) (err error) {
	if p.loaded {
		return nil
	}
	p.loaded = true
	defer func() {
		if err != nil {
			err = fmt.Errorf("provider %.64q: %w", p.id, err)
		}
	}()
	var models []jsonModel
	if len(p.models) > 0 {
		if err := json.Unmarshal(p.models, &models); err != nil {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	for _, m := range models {
		o := &offer{provider: p}
		if o.matches, err = readMatch(m.Match, 0); err == nil {
			o.prices, err = t.periods(m.Prices)
		}
		if err == nil && o.matches == nil {
			err = fmt.Errorf("%w: no match", ErrInvalid)
		}
		if err != nil {
			return fmt.Errorf("model %.64q: %w", m.ID, err)
		}
		p.offers = append(p.offers, o)
	}
	p.models = nil
	return nil
}

// periods reads the prices of a model: an object, or a list with the times at which they are in force.
func (t *Table) periods(raw json.RawMessage) ([]period, error) {
	var list []jsonPeriod
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	} else {
		list = make([]jsonPeriod, 1)
		if err := json.Unmarshal(raw, &list[0].Prices); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: no prices", ErrInvalid)
	}
	var all []period
	for _, in := range list {
		var p period
		var err error
		switch c := in.Constraint; {
		case c == nil:
			p.constant = true
		case c.Type == "start_date" || c.Type == "" && c.StartDate != "":
			if p.from, err = time.Parse(time.RFC3339, c.StartDate); err != nil {
				p.from, err = time.Parse(time.DateOnly, c.StartDate)
			}
			t.onQuarter(p.from.Equal(p.from.Truncate(15 * time.Minute)))
		case c.Type == "time_of_date" || c.Type == "" && c.StartTime != "":
			p.daily = true
			if p.begin, err = readTime(c.StartTime); err == nil {
				p.end, err = readTime(c.EndTime)
			}
			t.onQuarter(p.begin%(15*time.Minute) == 0 && p.end%(15*time.Minute) == 0)
		default:
			err = fmt.Errorf("constraint %.64q is not known", c.Type)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if p.rates, err = t.rates(in.Prices); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// onQuarter records whether a change of prices is at a quarter of an hour.
func (t *Table) onQuarter(exact bool) {
	if !t.lazy {
		t.quarters = t.quarters && exact
	}
}

// readTime reads a time of day with its zone.
func readTime(text string) (time.Duration, error) {
	at, err := time.Parse("15:04:05Z07:00", text)
	if err != nil {
		return 0, err
	}
	at = at.UTC()
	return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second, nil
}

// rates reads prices by unit. Unsupported units are left out.
func (t *Table) rates(in map[string]json.RawMessage) (r rates, err error) {
	for _, price := range []struct {
		key  string
		into **rate
		per  int64
	}{
		{"input_mtok", &r.input, 1e6}, {"cache_read_mtok", &r.cacheRead, 1e6}, {"cache_write_mtok", &r.cacheWrite, 1e6}, {"cache_write_1h_mtok", &r.cacheWrite1h, 1e6},
		{"output_mtok", &r.output, 1e6}, {"output_reasoning_mtok", &r.reasoning, 1e6}, {"requests_kcount", &r.requests, 1e3},
	} {
		if raw := in[price.key]; raw != nil && string(raw) != "null" {
			if *price.into, err = t.rate(raw, price.per); err != nil {
				return r, fmt.Errorf("%s: %w", price.key, err)
			}
		}
	}
	return r, nil
}

// rate reads a price: a number, or one with tiers.
func (t *Table) rate(raw json.RawMessage, per int64) (*rate, error) {
	number := func(n json.Number) (*big.Int, error) {
		price, err := parse(n.String())
		if err != nil {
			return nil, err
		}
		price.Mul(price, new(big.Rat).SetFrac(unit, big.NewInt(per)))
		if !price.IsInt() {
			return nil, fmt.Errorf("%w: %v has more decimals than are counted", ErrInvalid, n)
		}
		return price.Num(), nil
	}
	var in struct {
		Base  json.Number `json:"base"`
		Tiers []struct {
			Start json.Number `json:"start"`
			Price json.Number `json:"price"`
		} `json:"tiers"`
	}
	if raw[0] != '{' {
		in.Base = json.Number(raw)
	} else if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r, err := &rate{}, error(nil)
	if r.base, err = number(in.Base); err != nil {
		return nil, err
	}
	for _, step := range in.Tiers {
		start, err := parse(step.Start.String())
		if err != nil || !start.IsInt() {
			return nil, fmt.Errorf("%w: a tier starts at %.64q", ErrInvalid, step.Start.String())
		}
		price, err := number(step.Price)
		if err != nil {
			return nil, err
		}
		if !t.lazy {
			t.starts = append(t.starts, start.Num().Int64())
		}
		r.tiers = append(r.tiers, tier{start.Num().Int64(), price})
	}
	slices.SortStableFunc(r.tiers, func(a, b tier) int { return int(min(max(a.start-b.start, -1), 1)) })
	return r, nil
}

// maxNested limits how deeply matches are nested.
const maxNested = 16

// readMatch reads a match, nil for none.
func readMatch(raw json.RawMessage, depth int) (matcher, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var in map[string]json.RawMessage
	if err := json.Unmarshal(raw, &in); err != nil || len(in) != 1 || depth > maxNested {
		return nil, fmt.Errorf("%w: match %.100s", ErrInvalid, raw)
	}
	for kind, value := range in {
		switch kind {
		case "or", "and":
			return readMatches(kind == "and", value, depth)
		case "equals", "starts_with", "ends_with", "contains", "regex":
			var text string
			if err := json.Unmarshal(value, &text); err != nil {
				return nil, fmt.Errorf("%w: match %.100s", ErrInvalid, raw)
			}
			return textMatch(kind, text)
		}
	}
	return nil, fmt.Errorf("%w: match %.100s", ErrInvalid, raw)
}

func readMatches(and bool, raw json.RawMessage, depth int) (matcher, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("%w: match %.100s", ErrInvalid, raw)
	}
	var all []matcher
	for _, value := range list {
		m, err := readMatch(value, depth+1)
		if err != nil || m == nil {
			return nil, fmt.Errorf("%w: match %.100s", ErrInvalid, value)
		}
		all = append(all, m)
	}
	return func(name string) bool {
		for _, m := range all {
			if m(name) != and {
				return !and
			}
		}
		return and
	}, nil
}

func textMatch(kind, text string) (matcher, error) {
	folded := func(compare func(s, part string) bool) matcher {
		text := strings.ToLower(text)
		return func(name string) bool { return compare(strings.ToLower(name), text) }
	}
	switch kind {
	case "equals":
		return folded(func(s, part string) bool { return s == part }), nil
	case "starts_with":
		return folded(strings.HasPrefix), nil
	case "ends_with":
		return folded(strings.HasSuffix), nil
	case "contains":
		return folded(strings.Contains), nil
	}
	// Some published expressions start with a negative lookahead, which Go does not support.
	if rest, ok := strings.CutPrefix(text, "^(?!"); ok {
		if end := groupEnd(rest); end >= 0 {
			not, err := regexp.Compile("^(?:" + rest[:end] + ")")
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
			}
			then, err := regexp.Compile("^(?:" + rest[end+1:] + ")")
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
			}
			return func(name string) bool { return !not.MatchString(name) && then.MatchString(name) }, nil
		}
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return re.MatchString, nil
}

// groupEnd returns the position of the bracket that closes a group, -1 if there is none. Brackets in character
// classes are not recognised.
func groupEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return i
			}
		}
	}
	return -1
}
