package main

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestSummary(t *testing.T) {
	tests := []struct {
		name   string
		events string
		want   string
		ok     bool
	}{
		{
			name: "passing tests stay quiet",
			events: `{"Action":"start","Package":"x/a"}
{"Action":"run","Package":"x/a","Test":"TestA"}
{"Action":"output","Package":"x/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"x/a","Test":"TestA","Output":"    a_test.go:3: quiet\n"}
{"Action":"pass","Package":"x/a","Test":"TestA"}
{"Action":"output","Package":"x/a","Output":"goos: linux\n"}
{"Action":"output","Package":"x/a","Output":"cpu: of some name\n"}
{"Action":"run","Package":"x/a","Test":"BenchmarkA"}
{"Action":"output","Package":"x/a","Test":"BenchmarkA","Output":"BenchmarkA\n"}
{"Action":"output","Package":"x/a","Test":"BenchmarkA","Output":"BenchmarkA  1  9 ns/op\n"}
{"Action":"bench","Package":"x/a","Test":"BenchmarkA"}
{"Action":"output","Package":"x/a","Output":"PASS\n"}
{"Action":"output","Package":"x/a","Output":"ok  \tx/a\t0.01s\n"}
{"Action":"pass","Package":"x/a","Elapsed":1.26}
`,
			want: "ok    x/a  1 tests  1.3 s\n\n1 passed, 0 failed, 0 skipped in 0 s\n",
			ok:   true,
		},
		{
			name: "a benchmark fails after another",
			events: `{"Action":"run","Package":"x/a","Test":"BenchmarkA"}
{"Action":"output","Package":"x/a","Test":"BenchmarkA","Output":"BenchmarkA  1  9 ns/op\n"}
{"Action":"run","Package":"x/a","Test":"BenchmarkB"}
{"Action":"output","Package":"x/a","Test":"BenchmarkB","Output":"    b_test.go:3: wrong\n"}
{"Action":"fail","Package":"x/a","Test":"BenchmarkB"}
{"Action":"output","Package":"x/a","Output":"FAIL\n"}
{"Action":"fail","Package":"x/a","Elapsed":1}
`,
			want: "    b_test.go:3: wrong\nFAIL  x/a  1 tests  1.0 s\n\n==== FAILED: 1 ====\n  x/a BenchmarkB\n        b_test.go:3: wrong\n\n0 passed, 1 failed, 0 skipped in 0 s\n",
		},
		{
			name: "slow tests are listed, slowest first, without subtests",
			events: `{"Action":"run","Package":"x/a","Test":"TestA"}
{"Action":"pass","Package":"x/a","Test":"TestA","Elapsed":5}
{"Action":"run","Package":"x/a","Test":"TestB"}
{"Action":"run","Package":"x/a","Test":"TestB/one"}
{"Action":"pass","Package":"x/a","Test":"TestB/one","Elapsed":11}
{"Action":"pass","Package":"x/a","Test":"TestB","Elapsed":12.34}
{"Action":"run","Package":"x/a","Test":"TestC"}
{"Action":"pass","Package":"x/a","Test":"TestC","Elapsed":4.9}
{"Action":"pass","Package":"x/a","Elapsed":18}
`,
			want: "ok    x/a  4 tests  18.0 s\n\n==== SLOWEST ====\n    12.3 s  x/a TestB\n     5.0 s  x/a TestA\n\n4 passed, 0 failed, 0 skipped in 0 s\n",
			ok:   true,
		},
		{
			name: "a failed test is printed in place and again at the end",
			events: `{"Action":"run","Package":"x/a","Test":"TestA"}
{"Action":"output","Package":"x/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"x/a","Test":"TestA","Output":"    a_test.go:3: wrong\n"}
{"Action":"output","Package":"x/a","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"x/a","Test":"TestA"}
{"Action":"output","Package":"x/a","Output":"FAIL\tx/a\t0.01s\n"}
{"Action":"fail","Package":"x/a"}
`,
			want: "    a_test.go:3: wrong\n--- FAIL: TestA (0.00s)\nFAIL  x/a  1 tests  0.0 s\n" +
				"\n==== FAILED: 1 ====\n  x/a TestA\n        a_test.go:3: wrong\n    --- FAIL: TestA (0.00s)\n" +
				"\n0 passed, 1 failed, 0 skipped in 0 s\n",
		},
		{
			name: "a skipped test is named with its reason",
			events: `{"Action":"run","Package":"x/a","Test":"TestA"}
{"Action":"pass","Package":"x/a","Test":"TestA"}
{"Action":"run","Package":"x/a","Test":"TestB"}
{"Action":"output","Package":"x/a","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"x/a","Test":"TestB","Output":"    a_test.go:4: needs a moon\n"}
{"Action":"output","Package":"x/a","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"x/a","Test":"TestB"}
{"Action":"run","Package":"x/a","Test":"TestC"}
{"Action":"skip","Package":"x/a","Test":"TestC"}
{"Action":"pass","Package":"x/a"}
`,
			want: "ok    x/a  3 tests  0.0 s\n\n==== SKIPPED: 2 ====\n  x/a TestB: a_test.go:4: needs a moon\n  x/a TestC: no reason given\n" +
				"\n1 passed, 0 failed, 2 skipped in 0 s\n",
			ok: true,
		},
		{
			name: "a package that does not compile has failed",
			events: `{"ImportPath":"x/b [x/b.test]","Action":"build-output","Output":"b_test.go:3:1: undefined: y\n"}
{"ImportPath":"x/b [x/b.test]","Action":"build-fail"}
{"Action":"output","Package":"x/b","Output":"FAIL\tx/b [build failed]\n"}
{"Action":"fail","Package":"x/b","FailedBuild":"x/b [x/b.test]"}
`,
			want: "b_test.go:3:1: undefined: y\nFAIL\tx/b [build failed]\nFAIL  x/b  0 tests  0.0 s\n" +
				"\n==== FAILED: 1 ====\n  x/b\n    FAIL\tx/b [build failed]\n\n0 passed, 1 failed, 0 skipped in 0 s\n",
		},
		{
			name: "a test that never ended failed with its package",
			events: `{"Action":"run","Package":"x/a","Test":"TestA"}
{"Action":"output","Package":"x/a","Test":"TestA","Output":"fatal error: stack overflow\n"}
{"Action":"fail","Package":"x/a"}
`,
			want: "fatal error: stack overflow\nFAIL  x/a  1 tests  0.0 s\n" +
				"\n==== FAILED: 1 ====\n  x/a TestA\n    fatal error: stack overflow\n\n0 passed, 1 failed, 0 skipped in 0 s\n",
		},
		{
			name: "a stream that breaks off fails the tests it leaves open",
			events: `{"Action":"run","Package":"x/a","Test":"TestA"}
{"Action":"pass","Package":"x/a","Test":"TestA"}
{"Action":"run","Package":"x/a","Test":"TestB"}
`,
			want: "\n==== FAILED: 1 ====\n  x/a TestB\n\n1 passed, 1 failed, 0 skipped in 0 s\n",
		},
		{
			name:   "lines that are not events pass through",
			events: "go: cannot find main module\n",
			want:   "go: cannot find main module\n\nno test ran\n\n0 passed, 0 failed, 0 skipped in 0 s\n",
		},
		{
			name: "nothing to run is not a success",
			events: `{"Action":"output","Package":"x/n","Output":"?   \tx/n\t[no test files]\n"}
{"Action":"skip","Package":"x/n"}
`,
			want: "-     x/n  0 tests  0.0 s\n\nno test ran\n\n0 passed, 0 failed, 0 skipped in 0 s\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			s := newSummary(&out, stopped)
			if err := s.read(strings.NewReader(tt.events)); err != nil {
				t.Fatal(err)
			}
			s.print()
			if out.String() != tt.want {
				t.Errorf("printed\n%q\nwant\n%q", out.String(), tt.want)
			}
			if s.ok() != tt.ok {
				t.Errorf("ok = %v, want %v", s.ok(), tt.ok)
			}
		})
	}
}

// stopped is a clock that does not advance.
func stopped() time.Time { return time.Unix(0, 0) }

func TestLongFailuresAreRepeatedInPart(t *testing.T) {
	var out bytes.Buffer
	s := newSummary(&out, stopped)
	output := slices.Repeat([]string{"said\n"}, maxRepeated+2)
	s.fail(testKey{"x/a", "TestA"}, output)
	out.Reset()
	s.print()
	want := "\n==== FAILED: 1 ====\n  x/a TestA\n" + strings.Repeat("    said\n", maxRepeated) + "    (2 more lines above)\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	var out bytes.Buffer
	s := newSummary(&out, func() time.Time { return now })
	in := &input{runs: make(map[string]*run)}
	s.inputs = append(s.inputs, in)
	expect := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		out.Reset()
		s.progress()
		if out.String() != want {
			t.Errorf("after %v: printed %q, want %q", after, out.String(), want)
		}
	}
	expect(quiet-1, "")
	expect(1, "      20 s: compiling\n")
	s.add(in, event{Action: "start", Package: "x/a"})
	s.add(in, event{Action: "run", Package: "x/a", Test: "TestA"})
	s.add(in, event{Action: "pass", Package: "x/a", Test: "TestA"})
	s.add(in, event{Action: "run", Package: "x/a", Test: "TestB"})
	expect(0, "")
	s.add(in, event{Action: "start", Package: "x/b"})
	expect(quiet, "      40 s: running x/a (20 s, 1 tests, in TestB), x/b (20 s, 0 tests)\n")
	s.add(in, event{Action: "pass", Package: "x/a", Test: "TestB"})
	s.add(in, event{Action: "pass", Package: "x/a", Elapsed: 21})
	expect(quiet-1, "")
	expect(1, "      60 s: running x/b (40 s, 0 tests)\n")
}

func TestSummaryReportsReadErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	err := newSummary(&bytes.Buffer{}, stopped).read(iotest.ErrReader(broken))
	if !errors.Is(err, broken) {
		t.Errorf("error = %v, want %v", err, broken)
	}
}

// Two streams are of the same package: each has its own tests and result, and the end of one ends nothing of the other.
func TestTwoStreams(t *testing.T) {
	var out bytes.Buffer
	s := newSummary(&out, stopped)
	first, one := io.Pipe()
	second, two := io.Pipe()
	ended := make(chan error)
	for _, r := range []io.Reader{first, second} {
		go func() { ended <- s.read(r) }()
	}
	send := func(w io.Writer, events string) {
		if _, err := io.WriteString(w, events); err != nil {
			t.Error(err)
		}
	}
	send(one, `{"Action":"run","Package":"x/a","Test":"TestA"}`+"\n")
	send(two, `{"Action":"run","Package":"x/a","Test":"TestA"}`+"\n"+`{"Action":"pass","Package":"x/a","Test":"TestA"}`+"\n"+`{"Action":"pass","Package":"x/a","Elapsed":1}`+"\n")
	two.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	send(one, `{"Action":"run","Package":"x/a","Test":"TestB"}`+"\n"+`{"Action":"pass","Package":"x/a","Test":"TestB"}`+"\n"+`{"Action":"pass","Package":"x/a","Test":"TestA"}`+"\n"+`{"Action":"pass","Package":"x/a","Elapsed":2}`+"\n")
	one.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.print()
	want := "ok    x/a  1 tests  1.0 s\nok    x/a  2 tests  2.0 s\n\n3 passed, 0 failed, 0 skipped in 0 s\n"
	if out.String() != want {
		t.Errorf("printed\n%s\ninstead of\n%s", out.String(), want)
	}
	if !s.ok() {
		t.Error("not ok")
	}
}
