// Package campaign sets how much tests do. Some tests could go on for ever: random histories, crashes at random
// moments, damage to random bytes. An ordinary run does a little of each, and a campaign does much. LINEAGE_CAMPAIGN
// starts one and gives its length; see the targets crash, damage and campaign of the Makefile.
package campaign

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Variable is the environment variable with the length of the campaign.
const Variable = "LINEAGE_CAMPAIGN"

// length is 0 in an ordinary run.
var length = sync.OnceValue(func() int {
	text := os.Getenv(Variable)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		panic(fmt.Sprintf("%s is %q, which is not a positive number", Variable, text))
	}
	return n
})

// Runs reports whether this is a campaign.
func Runs() bool { return length() > 0 }

// Rounds returns how often a test repeats something: as given in an ordinary run, at least a fifth of that with -short,
// and the length of the campaign in one.
func Rounds(ordinary int) int { return rounds(ordinary, length(), testing.Short()) }

func rounds(ordinary, length int, short bool) int {
	switch {
	case length > 0:
		return max(length, ordinary)
	case short:
		return (ordinary + 4) / 5
	}
	return ordinary
}

// Sample returns about so many of the numbers from 1 to n, at equal distances from a random one on, and all of them in
// a campaign.
func Sample(n, about int) (sample []int) {
	step := 1
	if !Runs() {
		step = max(n/Rounds(about), 1)
	}
	for i := 1 + rand.IntN(step); i <= n; i += step {
		sample = append(sample, i)
	}
	return sample
}

// Long skips a test with -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: not with -short")
	}
}

// Seed returns what a test of random cases begins with: a new number in a campaign, and always the same in an ordinary
// run. So a change is not refused for what an earlier one did, and campaigns find what nobody has seen.
func Seed() uint64 {
	if Runs() {
		return rand.Uint64()
	}
	return ordinarySeed
}

const ordinarySeed = 20

// Checks sets how often rapid tries a property and, in an ordinary run, its seed, unless -rapid.checks and -rapid.seed are
// given. It returns what sets both back. TestMain calls it, or a test that runs by itself. With -short rapid does a fifth
// on its own.
func Checks(ordinary int) (restore func()) {
	flag.Parse()
	checks := choose("rapid.checks", strconv.Itoa(rounds(ordinary, length(), false)))
	if Runs() {
		return checks
	}
	seed := choose("rapid.seed", strconv.Itoa(ordinarySeed))
	return func() { checks(); seed() }
}

// choose sets a flag that was not given, and returns what sets it back.
func choose(name, value string) (restore func()) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return func() {}
	}
	// flag.Set would make this the choice of whoever runs the tests.
	set := flag.Lookup(name).Value
	was := set.String()
	if err := set.Set(value); err != nil {
		panic(err)
	}
	return func() { _ = set.Set(was) }
}

// Allocs returns how many allocations a call makes: the least of several averages, because the rest of the process
// allocates as well.
func Allocs(runs int, f func()) float64 {
	least := testing.AllocsPerRun(runs, f)
	for range 9 {
		if least == 0 {
			break
		}
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}
