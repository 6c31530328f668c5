package bench

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Config configures a run. The zero value of each field is its default.
type Config struct {
	// Dir is the directory for stores, in a subdirectory that is removed afterwards. Default: the
	// system's temporary directory. Full durability is measured on its disk.
	Dir string
	// Workloads to run; see Workloads. Default: all.
	Workloads []string
	// Systems to compare; see Systems. Default: all that are available.
	Systems []string
	// Sizes are the measured lengths of history. Default 10, 1,000, 100,000.
	Sizes []int
	// Rounds is the number of repetitions; slow measurements have fewer. Default 7.
	Rounds int
	// MessageBytes is the size of a message. Default 500.
	MessageBytes int
	// StoreMessages is the size of the large store, for workloads that depend on the size of a
	// store. Default 1,000,000.
	StoreMessages int
	// Forks is the maximum number of forks of a span, and of branches and threads in the workload
	// names. Default 100,000.
	Forks int
	// Sustained is the number of extends and forks per round of the workload sustained. Default
	// 200,000: more than fits in queues and buffers.
	Sustained int
	// Programs is the number of short programs of the workload programs, started 200 a minute. Default 100.
	Programs int
	// Program is the program lineage, for the workload commands. Commands limits it to those whose names begin so.
	Program  string
	Commands []string
	// Archives are files or folders of conversations for the workloads import and dedupe. Without
	// any, conversations are generated.
	Archives []string
	// Postgres is the address of a server, or PrivatePostgres. If it is empty, Postgres is skipped.
	Postgres string
	// NodeModules is a folder whose node_modules contains @deepagents/context. If it is empty, that
	// package is skipped.
	NodeModules string
	// Seed for generated messages. Default 1.
	Seed uint64
	// Progress, when not nil, is called with what is being measured.
	Progress func(what string)
}

// PrivatePostgres starts a server for the run from the installed programs, in a directory next to
// the stores. If there are none, Postgres is skipped and the report says so.
const PrivatePostgres = "private"

func (c *Config) setDefaults() {
	if c.Dir == "" {
		c.Dir = os.TempDir()
	}
	if len(c.Workloads) == 0 {
		c.Workloads = Workloads()
	}
	if len(c.Sizes) == 0 {
		c.Sizes = []int{10, 1_000, 100_000}
	}
	if c.Rounds <= 0 {
		c.Rounds = 7
	}
	if c.MessageBytes <= 0 {
		c.MessageBytes = 500
	}
	if c.StoreMessages <= 0 {
		c.StoreMessages = 1_000_000
	}
	if c.Forks <= 0 {
		c.Forks = 100_000
	}
	if c.Sustained <= 0 {
		c.Sustained = 200_000
	}
	if c.Programs <= 0 {
		c.Programs = 100
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	slices.Sort(c.Sizes)
	c.Sizes = slices.Compact(c.Sizes)
}

// ErrConfig is returned for an invalid configuration.
var ErrConfig = errors.New("invalid benchmark configuration")

func (c *Config) check() error {
	for _, w := range c.Workloads {
		if !slices.Contains(Workloads(), w) {
			return fmt.Errorf("%w: workload %q is not one of %s", ErrConfig, w, strings.Join(Workloads(), ", "))
		}
	}
	for _, s := range c.Systems {
		if !slices.Contains(Systems(), s) {
			return fmt.Errorf("%w: system %q is not one of %s", ErrConfig, s, strings.Join(Systems(), ", "))
		}
	}
	for _, n := range c.Sizes {
		if n < 1 {
			return fmt.Errorf("%w: a history of %d messages", ErrConfig, n)
		}
	}
	if c.MessageBytes < minMessage {
		return fmt.Errorf("%w: messages of %d bytes; they need at least %d to differ", ErrConfig, c.MessageBytes, minMessage)
	}
	return nil
}

func (c *Config) wants(workload string) bool { return slices.Contains(c.Workloads, workload) }

func (c *Config) wantsCommand(name string) bool {
	return len(c.Commands) == 0 || slices.ContainsFunc(c.Commands, func(begin string) bool { return strings.HasPrefix(name, begin) })
}
