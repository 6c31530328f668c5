package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is a line of `go test -json`; `go doc cmd/test2json` describes the fields.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// testKey names a test, or a package if name is empty.
type testKey struct{ pkg, name string }

// skip is a skipped test with its reason.
type skip struct {
	testKey
	reason string
}

// failure is a failed test with its output.
type failure struct {
	testKey
	output []string
}

// slow is a test that took long, with its subtests.
type slow struct {
	testKey
	seconds float64
}

// An input is a stream of events. Two of them may be of the same package.
type input struct {
	runs map[string]*run // by package
}

// run is a running package.
type run struct {
	since   time.Time
	tests   int                 // finished tests
	running map[string][]string // output of the tests that have not finished
	output  []string            // output outside tests
}

// summary prints a line per finished package, with the output of its failed tests, and counts the
// tests, including subtests.
type summary struct {
	now func() time.Time

	mu      sync.Mutex
	out     io.Writer
	began   time.Time
	printed time.Time // when a line was last printed
	inputs  []*input
	failed  []failure
	skipped []skip
	slow    []slow
	passed  int
}

func newSummary(out io.Writer, now func() time.Time) *summary {
	return &summary{now: now, out: out, began: now(), printed: now()}
}

// read reads events until the end of r. Lines that are not events are printed unchanged. A test
// without a result at the end has failed. Several streams may be read at the same time.
func (s *summary) read(r io.Reader) error {
	in := &input{runs: make(map[string]*run)}
	s.mu.Lock()
	s.inputs = append(s.inputs, in)
	s.mu.Unlock()
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		s.mu.Lock()
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				s.add(in, e)
			} else {
				s.printf("%s", line)
			}
		}
		if err != nil {
			for _, pkg := range slices.Sorted(maps.Keys(in.runs)) {
				s.failUnfinished(in, pkg)
			}
		}
		s.mu.Unlock()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
}

// quiet is the time without output after which progress is printed.
const quiet = 20 * time.Second

// progress prints the running packages and tests, unless there was output recently.
func (s *summary) progress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Sub(s.printed) < quiet {
		return
	}
	var running []string
	for _, in := range s.inputs {
		for _, pkg := range slices.Sorted(maps.Keys(in.runs)) {
			r := in.runs[pkg]
			text := fmt.Sprintf("%s (%d s, %d tests", pkg, int(now.Sub(r.since).Seconds()), r.tests)
			if tests := slices.Sorted(maps.Keys(r.running)); len(tests) > 0 {
				text += ", in " + tests[0]
			}
			running = append(running, text+")")
		}
	}
	what := "compiling"
	if len(running) > 0 {
		what = "running " + strings.Join(running, ", ")
	}
	s.printf("      %d s: %s\n", int(now.Sub(s.began).Seconds()), what)
}

func (s *summary) printf(format string, args ...any) {
	s.printed = s.now()
	fmt.Fprintf(s.out, format, args...)
}

func (s *summary) add(in *input, e event) {
	if e.Action == "build-output" {
		s.printf("%s", e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	r := in.runs[e.Package]
	if r == nil {
		r = &run{since: s.now(), running: make(map[string][]string)}
		in.runs[e.Package] = r
	}
	if e.Test == "" {
		s.addPackage(in, e, r)
		return
	}
	switch e.Action {
	case "run":
		r.running[e.Test] = nil
		return
	case "output":
		r.running[e.Test] = append(r.running[e.Test], e.Output)
		return
	case "pass":
		s.passed++
	case "skip":
		s.skipped = append(s.skipped, skip{testKey{e.Package, e.Test}, reason(r.running[e.Test])})
	case "fail":
		s.fail(testKey{e.Package, e.Test}, r.running[e.Test])
	default:
		return
	}
	if e.Elapsed >= slowFrom && !strings.Contains(e.Test, "/") {
		s.slow = append(s.slow, slow{testKey{e.Package, e.Test}, e.Elapsed})
	}
	r.tests++
	delete(r.running, e.Test)
}

// addPackage handles an event of a package.
func (s *summary) addPackage(in *input, e event, r *run) {
	verdict := ""
	switch e.Action {
	case "output":
		if !isVerdict(e.Output) && !isHeader(e.Output) {
			r.output = append(r.output, e.Output)
		}
		return
	case "pass":
		verdict = "ok"
	case "skip":
		verdict = "-"
	case "fail":
		verdict = "FAIL"
		s.failUnfinished(in, e.Package)
		if !slices.ContainsFunc(s.failed, func(f failure) bool { return f.pkg == e.Package }) {
			s.failed = append(s.failed, failure{testKey{pkg: e.Package}, r.output})
		}
	default:
		return
	}
	for _, line := range r.output {
		s.printf("%s", line)
	}
	s.printf("%-4s  %s  %d tests  %.1f s\n", verdict, e.Package, r.tests, e.Elapsed)
	delete(in.runs, e.Package)
}

// fail records a failed test and prints its output.
func (s *summary) fail(key testKey, output []string) {
	output = slices.DeleteFunc(output, isProgress)
	s.failed = append(s.failed, failure{key, output})
	for _, line := range output {
		s.printf("%s", line)
	}
}

// failUnfinished fails the tests of a package that have no result, by name. Benchmarks never have one, unless they fail.
func (s *summary) failUnfinished(in *input, pkg string) {
	r := in.runs[pkg]
	known := slices.ContainsFunc(s.failed, func(f failure) bool { return f.pkg == pkg })
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		if known && strings.HasPrefix(name, "Benchmark") {
			continue
		}
		s.fail(testKey{pkg, name}, r.running[name])
		r.tests++
	}
	clear(r.running)
}

// The slowest tests are listed at the end: at most maxSlow that took slowFrom seconds.
const (
	maxSlow  = 20
	slowFrom = 5
)

// maxRepeated limits the lines of a failed test that are repeated at the end.
const maxRepeated = 30

// print prints slow tests, skips, failures and totals.
func (s *summary) print() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.slow) > 0 {
		slices.SortStableFunc(s.slow, func(a, b slow) int { return cmp.Compare(b.seconds, a.seconds) })
		s.printf("\n==== SLOWEST ====\n")
		for _, sl := range s.slow[:min(len(s.slow), maxSlow)] {
			s.printf("  %6.1f s  %s\n", sl.seconds, sl.testKey)
		}
	}
	if len(s.skipped) > 0 {
		s.printf("\n==== SKIPPED: %d ====\n", len(s.skipped))
		for _, sk := range s.skipped {
			s.printf("  %s: %s\n", sk.testKey, sk.reason)
		}
	}
	if len(s.failed) > 0 {
		s.printf("\n==== FAILED: %d ====\n", len(s.failed))
		for _, f := range s.failed {
			s.printf("  %s\n", f.testKey)
			for _, line := range f.output[:min(len(f.output), maxRepeated)] {
				s.printf("    %s\n", strings.TrimSuffix(line, "\n"))
			}
			if more := len(f.output) - maxRepeated; more > 0 {
				s.printf("    (%d more lines above)\n", more)
			}
		}
	}
	if s.passed+len(s.failed) == 0 {
		s.printf("\nno test ran\n")
	}
	s.printf("\n%d passed, %d failed, %d skipped in %d s\n", s.passed, len(s.failed), len(s.skipped), int(s.now().Sub(s.began).Seconds()))
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

// reason returns the output of a skipped test in one line.
func reason(output []string) string {
	var lines []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line != "" && !isProgress(line) && !strings.HasPrefix(line, "--- SKIP") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "no reason given"
	}
	return strings.Join(lines, " ")
}

// isProgress reports whether a line only says that a test started, paused or continued.
func isProgress(line string) bool {
	return strings.HasPrefix(line, "=== ")
}

// isVerdict reports whether a line only has the result of a package. "[build failed]" and "[setup
// failed]" are more than that.
func isVerdict(line string) bool {
	return line == "PASS\n" || line == "FAIL\n" || strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "?   \t") ||
		strings.HasPrefix(line, "FAIL\t") && !strings.HasSuffix(line, " failed]\n")
}

// isHeader reports whether a line says where benchmarks run.
func isHeader(line string) bool {
	key, _, _ := strings.Cut(line, ": ")
	return slices.Contains([]string{"goos", "goarch", "pkg", "cpu"}, key)
}
