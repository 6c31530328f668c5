//go:build unix

package eino

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// benchState is a state as an agent has it: a document of 4 KB, the messages and a counter.
type benchState struct {
	Document string
	Messages []*schema.Message
	Steps    int
}

func init() { schema.RegisterName[*benchState]("lineage_bench_state") }

// memory is the store that the examples of Eino have: the last checkpoint of each id, in a map.
type memory map[string][]byte

func (m memory) Get(_ context.Context, id string) ([]byte, bool, error) {
	got, found := m[id]
	return got, found, nil
}

func (m memory) Set(_ context.Context, id string, body []byte) error {
	m[id] = slices.Clone(body)
	return nil
}

// folder is the same with a file for each id, which is replaced as a whole.
type folder string

func (f folder) Get(_ context.Context, id string) ([]byte, bool, error) {
	got, err := os.ReadFile(filepath.Join(string(f), id))
	if os.IsNotExist(err) {
		return nil, false, nil
	}
	return got, err == nil, err
}

func (f folder) Set(_ context.Context, id string, body []byte) error {
	name := filepath.Join(string(f), id)
	if err := os.WriteFile(name+".new", body, 0o666); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// benchGraph adds a message of 200 bytes in each step until there are 100, and is interrupted before the next step.
func benchGraph(b *testing.B, store compose.CheckPointStore) compose.Runnable[string, string] {
	g := compose.NewGraph[string, string](compose.WithGenLocalState(func(context.Context) *benchState {
		return &benchState{Document: strings.Repeat("All of this is the same in each step. ", 100)}
	}))
	step := compose.InvokableLambda(func(ctx context.Context, in string) (string, error) {
		return in, compose.ProcessState(ctx, func(_ context.Context, s *benchState) error {
			s.Steps++
			if s.Steps <= 100 {
				text := fmt.Sprint("message ", s.Steps, " ")
				s.Messages = append(s.Messages, schema.UserMessage(text+strings.Repeat("x", 200-len(text))))
			}
			return nil
		})
	})
	require.NoError(b, g.AddLambdaNode("step", step))
	require.NoError(b, g.AddEdge(compose.START, "step"))
	require.NoError(b, g.AddBranch("step", compose.NewGraphBranch(func(context.Context, string) (string, error) { return "step", nil },
		map[string]bool{"step": true, compose.END: true})))
	r, err := g.Compile(b.Context(), compose.WithCheckPointStore(store), compose.WithInterruptBeforeNodes([]string{"step"}))
	require.NoError(b, err)
	return r
}

// BenchmarkSteps measures what a step of an interrupted graph and a fork cost after 100 and 10,000 steps, by processor time: with the last
// checkpoint in memory and in a file, which a fork copies, and with this store, which keeps every checkpoint. go test -bench Steps -benchtime 1x -count 5
func BenchmarkSteps(b *testing.B) {
	for _, steps := range []int{100, 10_000} {
		for _, store := range []string{"memory", "folder", "lineage"} {
			b.Run(fmt.Sprint(store, "/", steps), func(b *testing.B) {
				for b.Loop() {
					benchSteps(b, store, steps)
				}
			})
		}
	}
}

func benchSteps(b *testing.B, name string, steps int) {
	dir := b.TempDir()
	var store compose.CheckPointStore
	written := func() int { return bytesIn(b, filepath.Join(dir, "*")) }
	fork := func(to string) error {
		got, _, err := store.Get(b.Context(), "run")
		require.NoError(b, err)
		return store.Set(b.Context(), to, got)
	}
	var opened *lineage.Store
	switch name {
	case "memory":
		m := make(memory)
		store = m
		written = func() (n int) {
			for _, one := range m {
				n += len(one)
			}
			return n
		}
	case "folder":
		store = folder(dir)
	default:
		var err error
		opened, err = lineage.Open(b.Context(), dir, lineage.Options{Durability: lineage.Normal})
		require.NoError(b, err)
		defer opened.Close()
		ours := New(opened, nil)
		store = ours
		written = func() int { return bytesIn(b, filepath.Join(dir, "journal", "*")) }
		fork = func(to string) error { return ours.Fork(b.Context(), "run", to, 0) }
	}
	graph := benchGraph(b, store)
	before, start := written(), processorTime(b)
	for range steps {
		_, err := graph.Invoke(b.Context(), "go", compose.WithCheckPointID("run"))
		_, interrupted := compose.ExtractInterruptInfo(err)
		require.True(b, interrupted, "%v", err)
	}
	after := written()
	b.ReportMetric(float64((processorTime(b)-start).Microseconds())/float64(steps), "µs/step")
	b.ReportMetric(float64(after-before)/float64(steps), "bytes/step")
	got, found, err := store.Get(b.Context(), "run")
	require.NoError(b, err)
	require.True(b, found)
	b.ReportMetric(float64(len(got)), "bytes/checkpoint")
	const forks = 50
	after, start = written(), processorTime(b)
	for i := range forks {
		require.NoError(b, fork(fmt.Sprint("fork ", i)))
	}
	b.ReportMetric(float64((processorTime(b)-start).Microseconds())/forks, "µs/fork")
	b.ReportMetric(float64(written()-after)/forks, "bytes/fork")
	if opened == nil {
		return
	}
	_, err = opened.Pack(b.Context(), lineage.PackOptions{All: true})
	require.NoError(b, err)
	b.ReportMetric(float64(written()-before)/float64(steps), "packed-bytes/step")
}

// bytesIn returns how many bytes files have before zeros at their end.
func bytesIn(b *testing.B, pattern string) (n int) {
	names, err := filepath.Glob(pattern)
	require.NoError(b, err)
	for _, name := range names {
		got, err := os.ReadFile(name)
		require.NoError(b, err)
		n += len(bytes.TrimRight(got, "\x00"))
	}
	return n
}

// processorTime returns how much of it this process has used.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
