package prices_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/usage/prices"
)

func day(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return at
}

// tokens returns numbers of tokens: input, cached input, cache writes for five minutes and an hour, output, reasoning.
func tokens(n ...int64) (t message.Tokens) {
	for k, n := range n {
		t.Set(message.TokenKind(k), n)
	}
	return t
}

// The values were computed by hand from the data.
func TestShipped(t *testing.T) {
	table := prices.Default()
	require.Equal(t, prices.Date, table.Date)
	require.True(t, table.ByQuarter())
	require.Equal(t, []int64{128000, 199999, 200000, 271999, 272000, 512000}, table.Starts())
	b, err := os.ReadFile("data.json")
	require.NoError(t, err)
	whole, err := prices.Read(bytes.NewReader(b))
	require.NoError(t, err)
	require.Equal(t, whole.Starts(), table.Starts())
	require.Equal(t, whole.ByQuarter(), table.ByQuarter())
	for name, c := range map[string]struct {
		use  prices.Use
		cost string
	}{
		// 1000×3 + 2000×0.3 + 3000×3.75 + 4000×6 + 500×15 = 3000+600+11250+24000+7500 = 46350 millionths; the whole input is 10,000.
		"below the tier": {prices.Use{Model: "claude-sonnet-4-5-20250929", Input: 10_000, Tokens: tokens(1000, 2000, 3000, 4000, 500, 100)}, "0.04635"},
		"at the tier":    {prices.Use{Model: "claude-sonnet-4-5", Input: 200_000, Tokens: tokens(200_000)}, "0.6"},
		// All of it is dearer: 200,001×6 = 1200006 millionths.
		"above the tier": {prices.Use{Model: "claude-sonnet-4-5", Input: 200_001, Tokens: tokens(200_001)}, "1.200006"},
		// Until 2026-03-13 input above 200,000 costs 10, then 5.
		"before a change": {prices.Use{Model: "claude-opus-4-6", At: day("2026-03-12T23:59:59Z"), Input: 300_000, Tokens: tokens(300_000)}, "3"},
		"after a change":  {prices.Use{Model: "claude-opus-4-6", At: day("2026-03-13T00:00:00Z"), Input: 300_000, Tokens: tokens(300_000)}, "1.5"},
		// Half of 1000×5 + 1000×25 = 30000 millionths.
		"batch":             {prices.Use{Provider: "anthropic", Model: "claude-opus-4-5", Tier: "batch", Tokens: tokens(1000, 0, 0, 0, 1000)}, "0.015"},
		"another tier":      {prices.Use{Model: "claude-opus-4-5", Tier: "priority", Tokens: tokens(1)}, ""},
		"unknown model":     {prices.Use{Model: "claude-imaginary", Tokens: tokens(1)}, ""},
		"no model":          {prices.Use{Tokens: tokens(1)}, ""},
		"unknown provider":  {prices.Use{Provider: "a proxy", Model: "claude-haiku-4-5", Tokens: tokens(1_000_000)}, "1"},
		"of Google's cloud": {prices.Use{Provider: "google-vertex", Model: "claude-haiku-4-5", Tokens: tokens(1_000_000)}, "1"},
		"a dated name":      {prices.Use{Model: "claude-haiku-4-5-20251001", Tokens: tokens(1_000_000)}, "1"},
		"of a named maker":  {prices.Use{Model: "anthropic/claude-haiku-4-5", Tokens: tokens(1_000_000)}, "1"},
		"also of a proxy":   {prices.Use{Provider: "a proxy", Model: "openai/gpt-5", Tokens: tokens(1_000_000)}, "1.25"},
		"of nobody":         {prices.Use{Model: "nobody/claude-haiku-4-5", Tokens: tokens(1)}, ""},
		"nothing":           {prices.Use{Model: "claude-haiku-4-5"}, "0"},
	} {
		cost, ok := table.Price(c.use)
		require.Equal(t, c.cost != "", ok, name)
		if ok {
			require.Equal(t, c.cost, cost.String(), name)
		}
	}
}

const own = `[{"id":"own","model_match":{"starts_with":"o-"},"service_tiers":{"flex":0.25},"models":[
	{"id":"night","match":{"equals":"O-Night"},"prices":[{"prices":{"input_mtok":4,"output_mtok":8}},
		{"constraint":{"type":"time_of_date","start_time":"22:00:00Z","end_time":"06:00:00Z"},"prices":{"input_mtok":1,"output_mtok":2}}]},
	{"id":"not","match":{"regex":"^(?!o-x)o-[a-z]$"},"prices":{"input_mtok":{"base":0.000000000000000001,"tiers":[{"start":100,"price":2},{"start":10,"price":1}]},"output_reasoning_mtok":5,"output_mtok":3,"requests_kcount":7}}]}]`

// Prices of a file: by the time of day, with what a name must not begin with, with many decimals, for reasoning and requests.
func TestFile(t *testing.T) {
	table, err := prices.Read(strings.NewReader(own))
	require.NoError(t, err)
	require.Equal(t, []int64{10, 100}, table.Starts())
	price := func(u prices.Use) string {
		cost, ok := table.Price(u)
		if !ok {
			return "none"
		}
		return cost.String()
	}
	million := tokens(1_000_000)
	for at, cost := range map[string]string{"2026-01-01T21:59:59Z": "4", "2026-01-01T22:00:00Z": "1", "2026-01-02T05:59:59Z": "1", "2026-01-02T06:00:00Z": "4", "2026-01-02T00:30:00+03:00": "4"} {
		require.Equal(t, cost, price(prices.Use{Model: "o-night", At: day(at), Tokens: million}), at)
	}
	require.Equal(t, "none", price(prices.Use{Model: "o-x", Tokens: million}))
	require.Equal(t, "0.000000000000000000000001", price(prices.Use{Model: "o-y", Input: 1, Tokens: tokens(1)}))
	require.Equal(t, "1", price(prices.Use{Model: "o-y", Input: 100, Tokens: million}))
	require.Equal(t, "2", price(prices.Use{Model: "o-y", Input: 101, Tokens: million}))
	require.Equal(t, "3.5", price(prices.Use{Model: "o-y", Tier: "flex", Input: 101, Tokens: tokens(0, 0, 0, 0, 4_000_000, 1_000_000)})) // (3×3 + 1×5) / 4
	require.Equal(t, "0.014", price(prices.Use{Model: "o-y", Requests: 2}))                                                              // 2×7/1000
	require.Equal(t, "none", price(prices.Use{Model: "gpt-5", Tokens: million}))
}

// A file that is no table is refused with an error that says why, and never makes the program hang or crash.
func TestRefused(t *testing.T) {
	for _, text := range []string{
		``, `{}`, `[]`, `[1]`, `{"providers":[{"id":"a","models":[{"id":"m","prices":{"input_mtok":1}}]}]}`,
		strings.Replace(own, `"input_mtok":4`, `"input_mtok":-4`, 1), strings.Replace(own, `"input_mtok":4`, `"input_mtok":1e999999999`, 1),
		strings.Replace(own, `"input_mtok":4`, `"input_mtok":1e-30`, 1), strings.Replace(own, `"input_mtok":4`, `"input_mtok":"4"`, 1),
		strings.Replace(own, `^(?!o-x)`, `(`, 1), strings.Replace(own, `"start":100`, `"start":1.5`, 1), strings.Replace(own, `time_of_date`, `moon`, 1),
		strings.Replace(own, `22:00:00Z`, `25:00:00Z`, 1), strings.Replace(own, `{"equals":"O-Night"}`, strings.Repeat(`{"or":[`, 50)+`{"equals":"x"}`+strings.Repeat(`]}`, 50), 1),
	} {
		_, err := prices.Read(strings.NewReader(text))
		require.ErrorIs(t, err, prices.ErrInvalid, text)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(own)
	f.Add(`{"source":"x","date":"2026-01-01","providers":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		table, err := prices.Read(strings.NewReader(text))
		if err != nil {
			require.ErrorIs(t, err, prices.ErrInvalid)
			return
		}
		if cost, ok := table.Price(prices.Use{Model: "o-y", Input: 5, Requests: 1, Tokens: tokens(1, 2, 3, 4, 5, 1)}); ok {
			require.NotContains(t, cost.String(), "-")
		}
	})
}

// Money is exact: it prints what was read, sums do not depend on their order, and rounding is half up.
func TestMoney(t *testing.T) {
	for text, rounded := range map[string]string{"0": "0.00", "0.3": "0.30", "0.005": "0.01", "0.00499999": "0.00", "1e-7": "0.00", "12345678.999": "12345679.00", "0e999999999": "0.00"} {
		m, err := prices.ParseMoney(text)
		require.NoError(t, err, text)
		require.Equal(t, rounded, m.Fixed(2), text)
	}
	for _, text := range []string{"", "x", "-1", "NaN", "Inf", "0x10", "1e10", "1_0", "1/3"} {
		_, err := prices.ParseMoney(text)
		require.ErrorIs(t, err, prices.ErrInvalid, text)
	}
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.Int64Range(0, 1_000_000_000_000_000).Draw(r, "n")
		m := prices.FromPico(n)
		again, ok := m.Pico()
		require.True(r, ok)
		require.Equal(r, n, again)
		b, err := json.Marshal(m)
		require.NoError(r, err)
		back, err := prices.ParseMoney(string(b))
		require.NoError(r, err)
		require.Equal(r, m.String(), back.String())
		require.Equal(r, m, m.Add(prices.Money{}))
		require.Equal(r, m, prices.Money{}.Add(m))
	})
}
