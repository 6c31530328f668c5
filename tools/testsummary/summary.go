package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// An event is one line of `go test -json`; `go doc cmd/test2json` describes the fields.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// A testKey names a test; an empty name stands for the package as a whole.
type testKey struct{ pkg, name string }

// A skip is a test that was skipped, and why.
type skip struct {
	testKey
	reason string
}

// A summary prints events as they come and counts them. Tests are counted with their subtests.
type summary struct {
	out     io.Writer
	running map[testKey][]string // output of tests that have not ended
	failed  []testKey
	skipped []skip
	passed  int
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, running: make(map[testKey][]string)}
}

// read consumes events until the end of r. A line that is not an event is printed as it is; a test without a
// verdict at the end has failed.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				s.add(e)
			} else {
				fmt.Fprint(s.out, line)
			}
		}
		if errors.Is(err, io.EOF) {
			s.failUnfinished(func(testKey) bool { return true })
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
}

func (s *summary) add(e event) {
	key := testKey{e.Package, e.Test}
	switch {
	case e.Action == "build-output":
		fmt.Fprint(s.out, e.Output)
	case e.Test == "":
		s.addPackage(e)
	case e.Action == "run":
		s.running[key] = nil
	case e.Action == "output":
		s.running[key] = append(s.running[key], e.Output)
	case e.Action == "pass":
		s.passed++
		delete(s.running, key)
	case e.Action == "skip":
		s.skipped = append(s.skipped, skip{key, reason(s.running[key])})
		delete(s.running, key)
	case e.Action == "fail":
		s.fail(key)
	}
}

func (s *summary) addPackage(e event) {
	switch e.Action {
	case "output":
		// A lone PASS is the test binary's own verdict; the line with the package's name follows it.
		if e.Output != "PASS\n" {
			fmt.Fprint(s.out, e.Output)
		}
	case "fail":
		s.failPackage(e.Package)
	}
}

// fail records a failed test and prints what it said.
func (s *summary) fail(key testKey) {
	s.failed = append(s.failed, key)
	for _, line := range s.running[key] {
		if !isProgress(line) {
			fmt.Fprint(s.out, line)
		}
	}
	delete(s.running, key)
}

// failPackage accounts for tests that never ended, and for packages that failed outside any test,
// for example because they do not compile.
func (s *summary) failPackage(pkg string) {
	inPackage := func(key testKey) bool { return key.pkg == pkg }
	s.failUnfinished(inPackage)
	if !slices.ContainsFunc(s.failed, inPackage) {
		s.failed = append(s.failed, testKey{pkg: pkg})
	}
}

// failUnfinished fails the running tests that match, in the order of their names.
func (s *summary) failUnfinished(match func(testKey) bool) {
	var unfinished []testKey
	for key := range s.running {
		if match(key) {
			unfinished = append(unfinished, key)
		}
	}
	slices.SortFunc(unfinished, func(a, b testKey) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range unfinished {
		s.fail(key)
	}
}

// print ends the report with failures, skips and totals.
func (s *summary) print() {
	if len(s.failed) > 0 {
		fmt.Fprintf(s.out, "\n==== FAILED: %d ====\n", len(s.failed))
		for _, key := range s.failed {
			fmt.Fprintf(s.out, "  %s\n", key)
		}
	}
	if len(s.skipped) > 0 {
		fmt.Fprintf(s.out, "\n==== SKIPPED: %d ====\n", len(s.skipped))
		for _, sk := range s.skipped {
			fmt.Fprintf(s.out, "  %s: %s\n", sk.testKey, sk.reason)
		}
	}
	if s.passed+len(s.failed) == 0 {
		fmt.Fprint(s.out, "\nno test ran\n")
	}
	fmt.Fprintf(s.out, "\n%d passed, %d failed, %d skipped\n", s.passed, len(s.failed), len(s.skipped))
}

// ok reports whether at least one test passed and nothing failed.
func (s *summary) ok() bool {
	return len(s.failed) == 0 && s.passed > 0
}

func (k testKey) String() string {
	if k.name == "" {
		return k.pkg
	}
	return k.pkg + " " + k.name
}

// reason is what a skipped test said, on one line.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !isProgress(line) && !strings.HasPrefix(line, "--- SKIP") {
			said = append(said, line)
		}
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

// isProgress reports whether a line only says that a test started, paused or went on.
func isProgress(line string) bool {
	return strings.HasPrefix(line, "=== ")
}
