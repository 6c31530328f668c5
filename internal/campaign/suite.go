package campaign

import "testing"

// Suite is a conformance suite for implementations: its tests get a subject that New makes of a configuration of the implementation.
type Suite[Config, Subject any] struct {
	New func(*testing.T, Config) Subject
	// Concurrent has the tests that the race detector is useful for, and Sequential the others.
	Sequential, Concurrent Tests[Subject]
}

// Tests are tests of a subject.
type Tests[Subject any] []struct {
	Name string
	Run  func(*testing.T, Subject)
}

// Run runs all tests.
func (s *Suite[Config, Subject]) Run(t *testing.T, c Config) {
	s.run(t, c, s.Sequential)
	s.run(t, c, s.Concurrent)
}

// RunConcurrent runs the concurrent tests. A package calls it in a test that starts with Long.
func (s *Suite[Config, Subject]) RunConcurrent(t *testing.T, c Config) { s.run(t, c, s.Concurrent) }

// RunSequential runs the sequential tests, and with -short, where Long skips the test of the concurrent ones, all.
func (s *Suite[Config, Subject]) RunSequential(t *testing.T, c Config) {
	if testing.Short() {
		s.Run(t, c)
		return
	}
	s.run(t, c, s.Sequential)
}

func (s *Suite[Config, Subject]) run(t *testing.T, c Config, tests Tests[Subject]) {
	for _, test := range tests {
		t.Run(test.Name, func(t *testing.T) { test.Run(t, s.New(t, c)) })
	}
}
