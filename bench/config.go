package bench

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Config says what to measure. The zero value of each field is a default.
type Config struct {
	// Dir is where stores are made, in a directory of their own that is removed
	// afterwards. Default: the system's temporary directory. Figures of full
	// durability are those of the disk that it is on.
	Dir string
	// Workloads to run; see Workloads. Default: all.
	Workloads []string
	// Systems to compare; see Systems. Default: all that can run here.
	Systems []string
	// Sizes are the lengths of history to measure at. Default 10, 1,000, 100,000.
	Sizes []int
	// Rounds is how often each measurement is repeated, slow ones less often. Default 7.
	Rounds int
	// MessageBytes is the size of a message. Default 500.
	MessageBytes int
	// StoreMessages is how much the large store holds in workloads about the size
	// of a store rather than of a history. Default 1,000,000.
	StoreMessages int
	// Forks is the largest number of forks of one place, and of branches and threads in the
	// workload names. Default 100,000.
	Forks int
	// Sustained is how many extends and forks a round of the workload sustained has.
	// Default 200,000: more than the queues and buffers take in.
	Sustained int
	// Archives are files or folders of conversations for the import and dedupe
	// workloads. Without any, conversations are made up.
	Archives []string
	// Postgres is the address of a server to measure, or PrivatePostgres. Without it,
	// Postgres is left out.
	Postgres string
	// NodeModules is a folder whose node_modules has @deepagents/context; without it,
	// that package is left out.
	NodeModules string
	// Seed of what is written. Default 1.
	Seed uint64
	// Progress, when not nil, is told what is being measured.
	Progress func(what string)
}

// PrivatePostgres is the address of a server that is started for the run, in a
// directory beside the stores, from the programs that are installed. Where none
// are, Postgres is left out, and the report says so.
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
	if c.Seed == 0 {
		c.Seed = 1
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	slices.Sort(c.Sizes)
	c.Sizes = slices.Compact(c.Sizes)
}

// ErrConfig is returned for a configuration that cannot be run.
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
