package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/lineage/search"
)

// hangs is a limit on a command that no sound run comes near.
const hangs = 5 * time.Minute

// reads are the command lines that read a store. BODY is a large content of it, OUT a file.
var reads = []string{
	"log --thread thread-1 --json",
	"log --thread thread-2",
	"log --json",
	"cat BODY",
	"cat --thread thread-0 :2",
	"tree --thread thread-1 --json",
	"tree --thread thread-3 --full",
	"search walrus --json -n 100",
	"verify",
	"verify --deep --json",
	"export --all --format openai",
	"export --thread thread-2 --format markdown",
	"stats --json",
	"thread list --json",
	"bundle create OUT --all",
}

// TestDamageOnTheCommandLine flips single bytes in every file of stores in every state and
// reads the store with a command: it prints what it prints of a sound store, or fails with
// an exit code for damage and has printed nothing that is wrong.
//
//test:damage
func TestDamageOnTheCommandLine(t *testing.T) {
	for state, prepare := range map[string][]string{
		"fresh":    nil,
		"packed":   {"pack"},
		"dense":    {"pack --dense"},
		"searched": {"pack", "append --thread thread-2 later_walrus", "search walrus"},
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "store")
			body := talkALot(t, dir)
			for _, line := range prepare {
				got := runLine(t.Context(), append(strings.Fields(line), "--store", dir)...)
				require.Zero(t, got.code, got.err)
			}
			out := filepath.Join(t.TempDir(), "out")
			want := make([]result, len(reads))
			texts := map[string]bool{}
			for i, line := range reads {
				copied := copyStore(t, dir)
				want[i] = readWith(t, line, copied, body, out)
				require.Zero(t, want[i].code, "%s: %s", line, want[i].err)
				for _, text := range said(want[i].out) {
					texts[text] = true
				}
				require.NoError(t, os.RemoveAll(copied))
			}
			campaign.EachDamage(t, dir, campaign.Rounds(20), func(copied string, d campaign.Damage) {
				i := rand.IntN(len(reads))
				got := readWith(t, reads[i], copied, body, out)
				requireHonest(t, reads[i], d.File, got, want[i], texts, fmt.Sprintf("%s of a %s store with %v", reads[i], state, d))
			})
		})
	}
}

func requireHonest(t *testing.T, line, name string, got, want result, texts map[string]bool, what string) {
	t.Helper()
	what += "\n" + got.err
	if strings.HasPrefix(line, "search") && strings.HasPrefix(name, search.FileName) {
		// SQLite has no checksums: what is found may be less or more, not how the program ends.
		require.Contains(t, []int{app.ExitOK, app.ExitFailure, app.ExitCorrupt, app.ExitNoHit}, got.code, what)
		return
	}
	if got.code == app.ExitOK {
		require.True(t, want.out == got.out, "%s\nprinted %d bytes instead of %d: %.300q", what, len(got.out), len(want.out), got.out)
		return
	}
	require.NotEmpty(t, got.err, what)
	if strings.Contains(got.err, "a newer version of lineage reads it") {
		require.Equal(t, app.ExitFailure, got.code, what)
	} else {
		require.Equal(t, app.ExitCorrupt, got.code, what)
	}
	if strings.HasPrefix(line, "cat") {
		require.True(t, strings.HasPrefix(want.out, got.out), what)
	}
	for _, text := range said(got.out) {
		require.True(t, texts[text], "%s\n%q", what, text)
	}
}

// readWith runs a command line and returns its output, or the file that it wrote.
func readWith(t *testing.T, line, dir, body, out string) result {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), hangs)
	defer stop()
	got := runLine(ctx, append(strings.Fields(strings.NewReplacer("BODY", body, "OUT", out).Replace(line)), "--store", dir)...)
	require.NoError(t, ctx.Err(), line)
	switch {
	case strings.Contains(line, "OUT"):
		b, err := os.ReadFile(out)
		if got.code == app.ExitOK {
			require.NoError(t, err)
		}
		got.out = string(b)
		_ = os.Remove(out)
	case strings.HasPrefix(line, "stats"): // sizes of files differ when an index is rebuilt
		var r records.Stats
		if got.code == app.ExitOK {
			require.NoError(t, json.Unmarshal([]byte(got.out), &r))
			r.StoredBytes, r.IndexBytes, r.OtherBytes, r.UnpackedBytes = 0, 0, 0, 0
			got.out = fmt.Sprintf("%+v", r)
		}
	}
	return got
}

// said returns the strings in JSON output that show a message: what is said and how it begins.
func said(out string) []string {
	var all []string
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, v := range v {
				walk(key, v)
			}
		case []any:
			for _, v := range v {
				walk(key, v)
			}
		case string:
			if slices.Contains([]string{"text", "content", "preview", "snippet"}, key) {
				all = append(all, v)
			}
		}
	}
	for line := range strings.Lines(out) {
		var v any
		if json.Unmarshal([]byte(line), &v) == nil {
			walk("", v)
		}
	}
	return all
}

func copyStore(t *testing.T, dir string) string {
	t.Helper()
	copied, err := os.MkdirTemp("", "damage-*")
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	return copied
}

// talkALot makes a store of a few threads with branches and a large body, and returns the
// id of the body.
func talkALot(t *testing.T, dir string) string {
	t.Helper()
	do := func(in string, args ...string) string {
		var out, errOut bytes.Buffer
		a := app.New(strings.NewReader(in), &out, &errOut, func(string) string { return "" })
		require.Zero(t, execute(t.Context(), a, append(args, "--store", dir, "--durability", "normal")), errOut.String())
		return out.String()
	}
	do("", "init", dir)
	for chat := range 4 {
		name := fmt.Sprintf("thread-%d", chat)
		do("", "thread", "create", "--title", name)
		var lines strings.Builder
		for n := range 8 {
			fmt.Fprintf(&lines, "{\"role\":\"user\",\"text\":\"message %d of %s about a walrus %s\"}\n", n, name, strings.Repeat("and more ", n*chat*5))
		}
		do(lines.String(), "append", "--thread", name, "--jsonl", "-")
		do("", "branch", "--thread", name, "other", "--from", ":4")
		do("", "append", "--thread", name, "other", "another walrus of "+name)
	}
	random := rand.New(rand.NewPCG(7, 7))
	body := make([]byte, 90<<10)
	for i := range body {
		body[i] = byte(random.Uint32())
	}
	do(string(body), "append", "--thread", "thread-0", "--type", "application/octet-stream", "--file", "-")
	var message struct {
		ContentID string `json:"content_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(do("", "log", "--thread", "thread-0", "--json", "--last", "1")), &message))
	return message.ContentID
}
