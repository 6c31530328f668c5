// Command testsummary reads `go test -json` on standard input and prints what `go test` prints without -json,
// then every failed and every skipped test by name, and the totals on a line of their own.
//
// It exits with 1 if anything failed or if no test ran at all.
package main

import (
	"fmt"
	"os"
)

func main() {
	s := newSummary(os.Stdout)
	err := s.read(os.Stdin)
	s.print()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
	if !s.ok() {
		os.Exit(1)
	}
}
