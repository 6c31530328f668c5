// Command testsummary reads `go test -json` on standard input. It prints a line for each finished package with its
// number of tests and seconds, after the output of the tests that failed. While nothing else is printed it says from
// time to time which packages and tests are running. At the end it repeats every failure, names every skipped test,
// and prints the totals.
//
// It exits with 1 if anything failed or if no test ran at all.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	s := newSummary(os.Stdout, time.Now)
	go func() {
		for range time.Tick(time.Second) {
			s.progress()
		}
	}()
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
