package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/postgres"
)

const (
	workCommands = "commands on a large store on Postgres"

	commandThread = 100   // messages of a thread
	rareThread    = 7_919 // each thread whose number it divides has a rare word in its first message
	rareWord      = "quetzal"
	halfWord      = "halfway" // in every second message
	noThread      = "no-such-thread"
	bytesOfWord   = 7 // of the vocabulary, with a space
)

// command is a command of the program, as somebody would type it.
type command struct {
	name string
	args []string
	none bool // it fails, or exits with 9, as nothing is found
}

// commands measures the program lineage on a large store: how long a command takes, and its memory. A store that an
// earlier run filled on a named server is used again, so that a run which was stopped can go on.
func (r *run) commands(ctx context.Context) error {
	switch {
	case r.config.Program == "":
		r.skip(Skipped{Workload: "commands", System: namePostgres, Why: "the program lineage was not named"})
		return nil
	case r.postgres == "":
		r.skip(Skipped{Workload: "commands", System: namePostgres, Why: r.noPostgres})
		return nil
	}
	const name = "bench_commands"
	separator := "?"
	if strings.Contains(r.postgres, "?") {
		separator = "&"
	}
	place := r.postgres + separator + "unsafe=true&store=" + name // a server of tests does not sync
	thread, err := r.fillForCommands(ctx, name)
	if err != nil {
		return err
	}
	all := []command{
		{name: "info", args: []string{"info"}},
		{name: "tree", args: []string{"tree", "--thread", thread}},
		{name: "log -n 20", args: []string{"log", "-n", "20", "--thread", thread}},
		{name: "export of a thread", args: []string{"export", "--thread", thread, "--format", "openai"}},
		{name: "thread list --limit 20", args: []string{"thread", "list", "--limit", "20"}},
		{name: "thread list of all", args: []string{"thread", "list"}},
		{name: "thread list --oldest", args: []string{"thread", "list", "--oldest"}},
		{name: "where", args: []string{"where", ":1", "--thread", thread}},
		{name: "a thread that is not there", args: []string{"log", "--thread", noThread}, none: true},
		{name: "search --index-for 10s, the first", args: []string{"search", rareWord, "--index-for", "10s"}},
		{name: "search that makes the index", args: []string{"search", rareWord}},
		{name: "search: a rare word", args: []string{"search", rareWord}},
		{name: "search: with a word of half", args: []string{"search", rareWord + " " + halfWord}},
		{name: "search: a word of half", args: []string{"search", halfWord}},
		{name: "append", args: []string{"append", "One more about " + rareWord, "--thread", thread}},
		{name: "search after it", args: []string{"search", rareWord}},
		{name: "export --all", args: []string{"export", "--all", "--format", "openai"}},
		{name: "verify", args: []string{"verify"}},
		{name: "verify --deep", args: []string{"verify", "--deep"}},
		{name: "copy to a directory", args: []string{"copy", place, filepath.Join(r.dir, "copied")}},
		{name: "gc --dry-run", args: []string{"gc", "--dry-run"}},
		{name: "erase", args: []string{"erase", ":2", "--yes", "--thread", thread}},
		{name: "search after erase", args: []string{"search", rareWord}},
		{name: "gc", args: []string{"gc", "--yes"}},
		{name: "search after gc", args: []string{"search", rareWord}},
	}
	for _, c := range all {
		if !r.config.wantsCommand(c.name) {
			continue
		}
		r.config.Progress(workCommands + ": " + c.name)
		if err := r.command(ctx, place, c); err != nil {
			return err
		}
	}
	return os.RemoveAll(filepath.Join(r.dir, "copied"))
}

// command runs a command to its end.
func (r *run) command(ctx context.Context, place string, c command) error {
	cmd := exec.CommandContext(ctx, r.config.Program, c.args...)
	cmd.Env = append(os.Environ(), "LINEAGE_STORE="+place, "TMPDIR="+r.dir)
	cmd.Stdout = io.Discard
	var said bytes.Buffer
	cmd.Stderr = &said
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	own := make(chan uint64, 1)
	go func() { own <- mostOwnMemory(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	took := time.Since(begun)
	close(ended)
	memory := <-own
	if (err != nil) != c.none {
		return fmt.Errorf("lineage %s: %w: %s", strings.Join(c.args, " "), errors.Join(err), said.String())
	}
	for unit, value := range map[string]float64{unitNanos: float64(took), unitBytes: float64(memory)} {
		r.fact(Row{Workload: workCommands + ": " + c.name, System: nameServed, Durability: full, Size: r.config.StoreMessages, Unit: unit, Value: value,
			CPUNanos: float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())})
	}
	return nil
}

// mostOwnMemory returns the most memory that a process had that is not of mapped files, 0 if unknown.
func mostOwnMemory(pid int, ended <-chan struct{}) (most uint64) {
	for {
		select {
		case <-ended:
			return most
		case <-time.After(5 * time.Millisecond):
			most = max(most, statusBytes(strconv.Itoa(pid), "RssAnon"))
		}
	}
}

// fillForCommands fills the store with threads until it has as many messages, and returns the id of one.
func (r *run) fillForCommands(ctx context.Context, name string) (thread string, err error) {
	engine, err := postgres.Open(ctx, r.postgres, postgres.Options{Store: name, Durability: lineage.Normal, Unsafe: true})
	if err != nil {
		return "", err
	}
	s := lineage.New(engine)
	defer func() { err = errors.Join(err, s.Close()) }()
	stats, err := s.Stats(ctx)
	if err != nil {
		return "", err
	}
	g := &generator{Rand: rand.New(rand.NewPCG(r.config.Seed, 0))}
	vocabulary := g.vocabulary(20_000, 'a', 'z')
	id := func(i int) string { return "thread-" + strconv.Itoa(i) }
	threads := r.config.StoreMessages / commandThread
	if int(stats.Threads) > threads {
		return "", fmt.Errorf("%w: the store %s has %d threads from an earlier run, more than %d", ErrConfig, name, stats.Threads, threads)
	}
	for i := int(stats.Threads); i < threads; i++ {
		g.Rand = rand.New(rand.NewPCG(r.config.Seed, uint64(i))) //nolint:gosec // reproducible, and no secret
		if i%1_000 == 0 {
			r.config.Progress(fmt.Sprintf("loading %s: %s messages", workCommands, count(i*commandThread)))
		}
		t, err := s.CreateThread(ctx, lineage.ThreadOptions{SourceID: id(i), Title: fmt.Sprint("thread ", i), UserID: fmt.Sprint("user ", i%10)})
		if err != nil {
			return "", err
		}
		c, err := t.Active(ctx)
		if err != nil {
			return "", err
		}
		items := make([]lineage.Item, commandThread)
		for j := range items {
			text := g.text(vocabulary, r.config.MessageBytes/bytesOfWord)
			if j%2 == 0 {
				text = halfWord + " " + text
			}
			if j == 0 && i%rareThread == 0 {
				text = rareWord + " " + text
			}
			items[j] = lineage.User(text)
		}
		if _, err := c.Extend(ctx, items...); err != nil {
			return "", err
		}
	}
	return id(threads / 2), nil
}
