package embedded

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// collectVariable names the store that the test binary writes to and collects
// until it is killed.
const collectVariable = "EMBEDDED_TEST_COLLECT"

// killedOptions are the options of the store of the killed process.
var killedOptions = Options{Durability: backend.Normal, SegmentSize: 16 << 10}

const garbage = "garbage that nothing uses "

func collectForEver(dir string) int {
	o := killedOptions
	e, err := Open(background, dir, o)
	for n := uint64(1); err == nil; n++ {
		if _, err = e.Apply(background, message(n), backend.Options{}); err != nil {
			break
		}
		b := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.Now(), fmt.Append(nil, garbage, n))
		if _, err = e.Apply(background, &structure.Commit{Records: []structure.Record{b}}, backend.Options{}); err != nil {
			break
		}
		fmt.Println(n)
		if n%40 == 0 {
			_, err = e.Collect(background, backend.CollectOptions{KeepUnused: -1})
		}
	}
	fmt.Println(err)
	return 1
}

// A process is killed during a collection. Every acknowledged message exists,
// and the next collection removes the garbage.
//
//test:norace
func TestKillDuringCollect(t *testing.T) {
	for round := range 4 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), collectVariable+"="+dir)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		lines := bufio.NewScanner(out)
		acked := uint64(0)
		for acked < 160 && lines.Scan() { // then the fourth collection is about to start
			_, err := fmt.Sscan(lines.Text(), &acked)
			require.NoError(t, err, lines.Text())
		}
		time.Sleep(time.Duration(round*round*6) * time.Millisecond)
		require.NoError(t, cmd.Process.Kill())
		for lines.Scan() {
			_, err := fmt.Sscan(lines.Text(), &acked)
			require.NoError(t, err, lines.Text())
		}
		_ = cmd.Wait()
		e := reopen(t, dir, killedOptions)
		for range 2 {
			requireSpans(t, e, acked)
			require.Empty(t, findings(t, e, true))
			_, err = e.Collect(background, backend.CollectOptions{KeepUnused: -1})
			require.NoError(t, err)
		}
		for c, err := range e.Feed(background, backend.Cursor{}) {
			require.NoError(t, err)
			for _, r := range c.Records {
				if b, ok := r.(*structure.Block); ok {
					require.False(t, bytes.HasPrefix(b.Body, []byte(garbage)))
				}
			}
		}
		for _, name := range append(namesIn(t, dir), namesIn(t, filepath.Join(dir, journalDir))...) {
			require.False(t, name == pendingFile || strings.HasSuffix(name, ".compact") || strings.HasPrefix(name, "verify-"), name)
		}
	}
}

// requireSpans requires at least so many messages.
func requireSpans(t *testing.T, e *Engine, least uint64) {
	t.Helper()
	last, err := e.Last(background, structure.DeriveID[structure.RunID]("run"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, last.Seq, least)
	n := uint64(0)
	for s, err := range e.Path(background, last, structure.Window{}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		n++
		want := message(n).Records
		require.Equal(t, want[len(want)-3].(*structure.Block).Body, s.Blocks[0].Body)
	}
	require.Equal(t, last.Seq, n)
}
