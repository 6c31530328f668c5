package sqlite_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain has properties tried as often as the race detector allows, unless
// -rapid.checks says how often. Tests that run in parallel only read it.
func TestMain(m *testing.M) {
	const name = "rapid.checks"
	flag.Parse()
	chosen := rapidChecks == ""
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == name })
	if !chosen {
		// Not by flag.Set, which would make it the choice of whoever runs the tests.
		_ = flag.Lookup(name).Value.Set(rapidChecks)
	}
	os.Exit(m.Run())
}
