package embedded

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// killVariable names the store that TestKillVictim writes to.
const killVariable = "EMBEDDED_TEST_KILL"

// killOptions make segments and checkpoints so small that many are created in a
// short time.
var killOptions = Options{SegmentSize: 64 << 10, OverlayBytes: 16 << 10, SyncInterval: 3 * time.Millisecond}

// commitHash identifies a commit by all its stored bytes.
func commitHash(c *structure.Commit) (content.ID, error) {
	payload, _, err := new(structure.Encoder).Encode(c)
	return content.Sum(payload), err
}

// TestKillVictim is the process that TestKill kills. It prints the acknowledged
// commits.
func TestKillVictim(t *testing.T) {
	dir := os.Getenv(killVariable)
	if dir == "" {
		t.Skip("TestKill runs it in a child process")
	}
	o := killOptions
	e, err := Open(context.Background(), dir, o)
	require.NoError(t, err)
	var group sync.WaitGroup
	for n := range 4 {
		d := backend.Full
		if n%2 == 0 {
			d = backend.Normal
		}
		group.Go(func() {
			if err := writeForEver(e, d); err != nil {
				fmt.Println("failed", err)
			}
		})
	}
	group.Wait()
}

// writeForEver extends a context and prints the acknowledged commits.
func writeForEver(e *Engine, d backend.Durability) error {
	in := structure.NewID[structure.ContextID]()
	var at structure.SpanRef
	for n := 0; ; n++ {
		now := time.Now().UTC().Truncate(time.Millisecond)
		c := &structure.Commit{Time: now}
		if n == 0 {
			c.Records = append(c.Records, &structure.Context{ID: in, CreatedAt: now})
		}
		was := at
		if n%50 == 0 { // a fork of the context
			run := &structure.Run{ID: structure.NewID[structure.RunID](), Parent: at}
			c.Records, at = append(c.Records, run), structure.SpanRef{Run: run.ID}
		}
		at.Seq++
		body := fmt.Appendf(nil, "%v %d %s", in, n, strings.Repeat("word ", rand.IntN(300)))
		block := structure.NewBlock(content.TypeText, content.BlockOrigin{Kind: content.OriginUser}, now, body)
		c.Records = append(c.Records, block,
			&structure.Span{Ref: at, Usages: []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: block.ID, CreatedAt: now}}},
			&structure.Tip{Context: in, Span: at},
		)
		o := backend.Options{Durability: d}
		if n > 0 {
			o.Tips = []backend.Expect{{Context: in, Tip: was}}
		}
		receipt, err := e.Apply(context.Background(), c, o)
		if err != nil {
			return err
		}
		hash, err := commitHash(c)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.WriteString(fmt.Sprintf("commit %d %v\n", receipt.Number, hash)); err != nil {
			return err
		}
	}
}

// killOne runs the victim until it has acknowledged some commits, or with early
// for a short time in which it starts. It kills it and adds the acknowledged
// commits to acked.
func killOne(t *testing.T, dir string, early bool, acked map[uint64]string) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillVictim$")
	cmd.Env = append(os.Environ(), killVariable+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	read := func() bool {
		if !lines.Scan() {
			return false
		}
		var number uint64
		var hash string
		_, err := fmt.Sscanf(lines.Text(), "commit %d %s", &number, &hash)
		require.NoError(t, err, lines.Text())
		require.Len(t, hash, 64)
		require.NotContains(t, acked, number, "a number was used twice")
		acked[number] = hash
		return true
	}
	if early {
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond) // at a random moment
	} else {
		for range 1 + rand.IntN(150) {
			require.True(t, read(), "the victim stopped")
		}
	}
	require.NoError(t, cmd.Process.Kill())
	for read() {
	}
	require.Error(t, cmd.Wait())
}

// A killed process loses no acknowledged commit, and its store can be opened at
// once.
func TestKill(t *testing.T) {
	rounds := campaign.Rounds(20)
	var acked map[uint64]string
	var dir string
	total := 0
	for done := range rounds {
		if done%5 == 0 {
			dir, acked = t.TempDir(), map[uint64]string{}
		}
		before := len(acked)
		killOne(t, dir, done%4 == 3, acked)
		total += len(acked) - before
		requireAcked(t, dir, acked)
		if done%5 == 4 {
			require.NoError(t, os.RemoveAll(dir))
		}
	}
	require.Positive(t, total)
	t.Logf("%d processes killed, %d commits acknowledged", rounds, total)
}

// requireAcked requires all acknowledged commits to exist.
func requireAcked(t *testing.T, dir string, acked map[uint64]string) {
	o := killOptions
	e, err := Open(context.Background(), dir, o)
	require.NoError(t, err)
	found := uint64(0)
	for c, err := range e.Feed(context.Background(), backend.Cursor{}) {
		require.NoError(t, err)
		found++
		require.Equal(t, found, c.Number)
		if want, ok := acked[found]; ok {
			hash, err := commitHash(c)
			require.NoError(t, err)
			require.Equal(t, want, hash.String(), "commit %d", found)
			requireReadable(t, e, c)
		}
	}
	for number := range acked {
		require.LessOrEqual(t, number, found, "an acknowledged commit is lost")
	}
	require.Empty(t, complaints(t, e))
	require.NoError(t, e.Close())
}

// requireReadable requires that the contents of a commit are found by their ids.
func requireReadable(t *testing.T, e *Engine, c *structure.Commit) {
	for _, r := range c.Records {
		switch r := r.(type) {
		case *structure.Block:
			b, err := e.Blocks(context.Background(), []content.ID{r.ID})
			require.NoError(t, err)
			require.Equal(t, r.Body, b[0].Body)
		case *structure.Span:
			_, err := e.Digest(context.Background(), r.Ref)
			require.NoError(t, err)
		}
	}
}
