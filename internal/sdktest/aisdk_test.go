package sdktest

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lineage-store/lineage/lineage/message"
	"github.com/lineage-store/lineage/lineage/message/messagetest"
)

//go:embed aisdk.mjs
var aisdk string

// aiSDK is the AI SDK, running.
type aiSDK struct {
	in  io.Writer
	out *bufio.Scanner
}

// startAISDK runs the package in the folder that LINEAGE_TEST_AISDK names, or where
// scripts/aisdk.sh puts it.
func startAISDK(t *testing.T) *aiSDK {
	folder := os.Getenv("LINEAGE_TEST_AISDK")
	if folder == "" {
		folder = filepath.Join("..", "..", ".bin", "aisdk")
	}
	folder, err := filepath.Abs(folder)
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "ai")); err != nil {
		t.Skip("NOT RUN with the AI SDK: it is not installed; scripts/aisdk.sh fetches it")
	}
	script := filepath.Join(t.TempDir(), "aisdk.mjs")
	require.NoError(t, os.WriteFile(script, []byte(aisdk), 0o666))
	cmd := exec.Command("node", "--no-warnings", script, folder)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait(), problems.String())
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	return &aiSDK{in, lines}
}

// refused returns what the AI SDK refuses about a history, empty if nothing.
func (a *aiSDK) refused(t require.TestingT, items []json.RawMessage) string {
	if items == nil {
		items = []json.RawMessage{}
	}
	line, err := json.Marshal(items)
	require.NoError(t, err)
	_, err = a.in.Write(append(line, '\n'))
	require.NoError(t, err)
	require.True(t, a.out.Scan(), "the AI SDK ended: %v", a.out.Err())
	var answer string
	require.NoError(t, json.Unmarshal(a.out.Bytes(), &answer))
	return answer
}

func TestAISDK(t *testing.T) {
	sdk := startAISDK(t)
	require.NotEmpty(t, sdk.refused(t, []json.RawMessage{json.RawMessage(`{"id":"1","role":"user","parts":[]}`)}))
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom(message.Dialects()).Draw(t, "from")
		var history []message.Message
		for _, item := range messagetest.History(t, from) {
			history = append(history, message.Decode([]byte(item), "application/json", "user")...)
		}
		out, err := message.Encode(message.UI, history)
		require.NoError(t, err)
		require.Empty(t, sdk.refused(t, out.Items), "%s", out.Items)
	})
	rapid.Check(t, func(t *rapid.T) {
		bodies := messagetest.Wild(t)
		out, err := message.Encode(message.UI, messagetest.Decoded(bodies))
		require.NoError(t, err)
		require.Empty(t, sdk.refused(t, out.Items), "%s\nfrom %q", out.Items, bodies)
	})
}
