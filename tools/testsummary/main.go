// Command testsummary reads `go test -json` on standard input, or in the files that are named, all at the same time. It prints a line per finished
// package with the number of tests and seconds, after the output of failed tests. When nothing else
// is printed, it lists the running packages and tests from time to time. At the end it lists the
// slowest tests and the skipped ones, repeats failures and prints totals.
//
// It exits with 1 if a test failed or no test ran.
package main

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

func main() {
	s := newSummary(os.Stdout, time.Now)
	go func() {
		for range time.Tick(time.Second) {
			s.progress()
		}
	}()
	err := readAll(s, os.Args[1:])
	s.print()
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		os.Exit(1)
	}
	if !s.ok() {
		os.Exit(1)
	}
}

// readAll reads files, or standard input if there are none.
func readAll(s *summary, names []string) error {
	if len(names) == 0 {
		return s.read(os.Stdin)
	}
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			f, err := os.Open(name)
			if err != nil {
				errs[i] = err
				return
			}
			defer f.Close()
			errs[i] = s.read(f)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
