package sqltest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/chat/chattest"
	"github.com/lineage-store/lineage/sqladapter/sqlchat"
)

// Environment of a process that changes a chat: the database and the number of the process.
const (
	changesIn = "LINEAGE_SQLTEST_CHANGES_IN"
	changesAs = "LINEAGE_SQLTEST_CHANGES_AS"
)

// testChangingProcesses lets processes concurrently add members to the metadata of a chat. None may
// be lost.
func testChangingProcesses(t *testing.T, c Config) {
	const processes, turns = 8, 25
	if name := os.Getenv(changesIn); name != "" {
		changeChat(t, c.Named(name), os.Getenv(changesAs), turns)
		return
	}
	p := c.New(t)
	s := sqlchat.On(open(t, p))
	_, err := s.CreateChat(background, chat.Chat{ID: "c", UserID: "ada"})
	require.NoError(t, err)

	type process struct {
		cmd   *exec.Cmd
		begin io.WriteCloser
		says  *bufio.Reader
	}
	running := make([]process, processes)
	for i := range running {
		cmd := exec.Command(os.Args[0], "-test.run", onlyThis(t), "-test.count", "1")
		cmd.Env = append(os.Environ(), changesIn+"="+c.NameOf(p), changesAs+"="+strconv.Itoa(i))
		begin, err := cmd.StdinPipe()
		require.NoError(t, err)
		says, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		running[i] = process{cmd, begin, bufio.NewReader(says)}
	}
	for _, r := range running { // start all at once
		line, err := r.says.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
	for _, r := range running {
		require.NoError(t, r.begin.Close())
	}
	for _, r := range running {
		body, err := io.ReadAll(r.says)
		require.NoError(t, err)
		require.NoError(t, r.cmd.Wait(), "%s", body)
	}

	var names []string
	for i := range processes {
		for turn := range turns {
			names = append(names, fmt.Sprintf("%d.%d", i, turn))
		}
	}
	chattest.RequireMembers(t, s, "c", names)
}

// onlyThis returns a pattern that matches only this test.
func onlyThis(t *testing.T) string {
	parts := strings.Split(t.Name(), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// changeChat is the body of a process.
func changeChat(t *testing.T, p Database, as string, turns int) {
	s := sqlchat.On(open(t, p))
	fmt.Println("ready")
	_, err := io.ReadAll(os.Stdin)
	require.NoError(t, err)
	for turn := range turns {
		require.NoError(t, chattest.AddMember(background, s, "c", fmt.Sprintf("%s.%d", as, turn)))
	}
}
