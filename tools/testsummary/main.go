// Command testsummary reads `go test -json` on standard input. It prints a line per finished
// package with the number of tests and seconds, after the output of failed tests. When nothing else
// is printed, it lists the running packages and tests from time to time. At the end it lists the
// slowest tests and the skipped ones, repeats failures and prints totals.
//
// It exits with 1 if a test failed or no test ran.
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
