// Package campaign sets the amount of random testing. Some tests have no natural end: random
// histories, crashes at random moments, damage to random bytes. An ordinary run does a little
// of each, and a campaign much more. LINEAGE_CAMPAIGN starts a campaign and sets its length;
// see the targets crash, damage and campaign of the Makefile.
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

// Rounds returns the number of repetitions: the given number in an ordinary run, a fifth of it
// with -short, and in a campaign at least its length.
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

// Sample returns about the given number of the numbers from 1 to n, at equal distances and
// with a random start, and all of them in a campaign.
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

// Messages is the environment variable with the number of messages for benchmarks.
const Messages = "LINEAGE_BENCH_MESSAGES"

// BenchMessages returns the number of messages for a benchmark, ordinary unless the variable Messages sets another.
func BenchMessages(b *testing.B, ordinary int) int {
	b.Helper()
	text := os.Getenv(Messages)
	if text == "" {
		return ordinary
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("%s is %q, which is not a positive number", Messages, text)
	}
	return n
}

// Long skips a test with -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: not with -short")
	}
}

// Seed returns the seed for random cases: a random number in a campaign, and a constant in an
// ordinary run. So a change is not rejected because of an older defect, and campaigns find new
// ones.
func Seed() uint64 {
	if Runs() {
		return rand.Uint64()
	}
	return ordinarySeed
}

const ordinarySeed = 20

// Checks sets the number of checks of rapid and, in an ordinary run, its seed, unless
// -rapid.checks and -rapid.seed are given. The result restores both. Call it from TestMain or
// from a single test. With -short rapid itself reduces the number to a fifth.
func Checks(ordinary int) (restore func()) {
	flag.Parse()
	checks := choose("rapid.checks", strconv.Itoa(rounds(ordinary, length(), false)))
	if Runs() {
		return checks
	}
	seed := choose("rapid.seed", strconv.Itoa(ordinarySeed))
	return func() { checks(); seed() }
}

// choose sets a flag that was not given, and returns a function that restores it.
func choose(name, value string) (restore func()) {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return func() {}
	}
	// flag.Set would mark the flag as given.
	set := flag.Lookup(name).Value
	was := set.String()
	if err := set.Set(value); err != nil {
		panic(err)
	}
	return func() { _ = set.Set(was) }
}

// Allocs returns the number of allocations of a call: the minimum of several averages, because
// the rest of the process allocates as well.
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
