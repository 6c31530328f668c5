package postgres

import (
	"bufio"
	"fmt"
	"os"
	process "os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// killAt runs the test in another process, and kills that when it says that it is so far. It reports
// whether it did.
func killAt(t *testing.T, at int64, environment []string) bool {
	t.Helper()
	cmd := process.Command(os.Args[0], "-test.run=^TestKilledCopy$", "-test.count=1")
	cmd.Env = append(os.Environ(), environment...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == copyEnd {
			require.NoError(t, in.Close())
			continue
		}
		var done int64
		if n, _ := fmt.Sscanf(lines.Text(), copyWord+" %d", &done); n == 0 {
			fmt.Fprintln(&said, lines.Text())
		} else if done >= at && done < at+350 {
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait())
			return true
		}
	}
	require.NoError(t, cmd.Wait(), said.String())
	return false
}
