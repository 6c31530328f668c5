package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

var background = context.Background()

// holderVariable names the store that the test binary opens and holds until its
// input ends.
const holderVariable = "EMBEDDED_TEST_HOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderVariable); dir != "" {
		os.Exit(hold(dir))
	}
	if dir := os.Getenv(collectVariable); dir != "" {
		os.Exit(collectForEver(dir))
	}
	if dir := os.Getenv(packVariable); dir != "" {
		os.Exit(packForEver(dir))
	}
	if dir := os.Getenv(backupVariable); dir != "" {
		os.Exit(backUpForEver(dir))
	}
	campaign.Checks(8) // each opens stores
	goleak.VerifyTestMain(m)
}

func hold(dir string) int {
	e, err := Open(background, dir, Options{Durability: backend.Normal})
	if err == nil {
		_, err = e.Apply(background, message(1), backend.Options{})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("holds")
	io.Copy(io.Discard, os.Stdin)
	if err := e.Close(); err != nil {
		return 1
	}
	return 0
}

// startHolder starts a process that holds the store.
func startHolder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), holderVariable+"="+dir)
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "holds\n", line)
	return cmd
}

// message is the n-th commit of a conversation in one run.
func message(n uint64) *structure.Commit {
	run := structure.DeriveID[structure.RunID]("run")
	thread := structure.DeriveID[structure.ThreadID]("thread")
	body := fmt.Appendf(nil, "message %d of a conversation that goes on and on", n)
	c := &structure.Commit{}
	if n == 1 {
		c.Records = append(c.Records, &structure.Thread{ID: thread}, &structure.Run{ID: run})
	}
	ref := structure.SpanRef{Run: run, Seq: n}
	c.Records = append(c.Records,
		&structure.Block{Block: content.Block{ID: content.Sum(body), Type: content.TypeText, Size: int64(len(body))}, Body: body},
		&structure.Span{Ref: ref, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: content.Sum(body)}}},
		&structure.Context{ID: structure.DeriveID[structure.ContextID](fmt.Sprint(n)), Thread: thread, Base: ref, Tip: ref},
	)
	return c
}

// fill opens a store, adds messages up to number last and returns it.
func fill(t *testing.T, dir string, o Options, last uint64) *Engine {
	t.Helper()
	e, err := Open(background, dir, o)
	require.NoError(t, err)
	head, err := e.Head(background)
	require.NoError(t, err)
	for n := head.Number + 1; n <= last; n++ {
		_, err := e.Apply(background, message(n), backend.Options{Durability: backend.Normal})
		require.NoError(t, err)
	}
	return e
}

// made creates a store with so many messages and closes it.
func made(t *testing.T, o Options, messages uint64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, fill(t, dir, o, messages).Close())
	return dir
}

// packedStore creates a store with 60 messages in one pack.
func packedStore(t *testing.T, o backend.PackOptions) string {
	dir := t.TempDir()
	e := fill(t, dir, Options{}, 60)
	_, err := e.Pack(background, o)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	return dir
}

// reopen opens a store and closes it at the end of the test.
func reopen(t *testing.T, dir string, o Options) *Engine {
	t.Helper()
	e, err := Open(background, dir, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// requireMessages requires a store to have exactly so many messages.
func requireMessages(t *testing.T, e *Engine, messages uint64) {
	t.Helper()
	head, err := e.Head(background)
	require.NoError(t, err)
	require.Equal(t, messages, head.Number)
	run := structure.DeriveID[structure.RunID]("run")
	n := uint64(0)
	for s, err := range e.Path(background, structure.SpanRef{Run: run, Seq: messages}, structure.Window{}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		n++
		want := message(n).Records
		require.Equal(t, n, s.Position)
		require.Equal(t, want[len(want)-3].(*structure.Block).Body, s.Blocks[0].Body)
	}
	require.Equal(t, messages, n)
	stats, err := e.Stats(background)
	require.NoError(t, err)
	require.Equal(t, messages, stats.Contexts)
	require.Equal(t, messages, stats.Blocks)
}

func findings(t *testing.T, e *Engine, deep bool) []backend.Finding {
	t.Helper()
	var out []backend.Finding
	for f, err := range e.Verify(background, backend.VerifyOptions{Deep: deep}) {
		require.NoError(t, err)
		require.NotEmpty(t, f.Problem)
		require.NotEmpty(t, f.Subject)
		out = append(out, f)
	}
	return out
}
