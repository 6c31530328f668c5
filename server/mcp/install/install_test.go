package install

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

var started = Server{Command: "/opt/my programs/lineage", Args: []string{"mcp", "--store", `/home/a "b"/.lineage`}}

func environment(t *testing.T) *follow.Environment {
	e := &follow.Environment{Home: t.TempDir(), OS: "linux", Getenv: func(string) string { return "" }}
	return e
}

func write(t *testing.T, path, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
	require.NoError(t, os.Chmod(path, 0o640))
}

func text(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// TestEveryAgent adds the entry for each agent that is followed: to no file, and to one that has other things.
func TestEveryAgent(t *testing.T) {
	for _, one := range follow.Agents() {
		t.Run(one.Name, func(t *testing.T) {
			e := environment(t)
			p, err := For(one.Name, e, started)
			if errors.Is(err, ErrNoServers) {
				require.Contains(t, []string{"pi", "openclaw"}, one.Name)
				return
			}
			if errors.Is(err, ErrByHand) {
				require.Contains(t, []string{"antigravity", "goose", "cline", "roo", "crush"}, one.Name)
				return
			}
			require.NoError(t, err)
			if one.Name == "claude-code" {
				require.Equal(t, append([]string{"claude", "mcp", "add", "--scope", "user", "lineage", "--", started.Command}, started.Args...), p.Command)
				_, err := p.Write()
				require.ErrorIs(t, err, errors.ErrUnsupported)
				return
			}
			changed, err := p.Write()
			require.NoError(t, err)
			require.True(t, changed)
			require.Equal(t, p.Text, text(t, p.Path))
			changed, err = p.Write()
			require.NoError(t, err)
			require.False(t, changed, "it is there")

			other := "{\n  // mine\n  \"theme\": \"dark\", /* and */\n  \"model\": {\"a\": 1e3,},\n}\n"
			if strings.HasSuffix(p.Path, ".toml") {
				other = "# mine\nmodel = \"x\" # and\n[mcp_servers.other]\ncommand = \"y\"\n[a.b]\nc = 1"
			}
			write(t, p.Path, other)
			changed, err = p.Write()
			require.NoError(t, err)
			require.True(t, changed)
			now := text(t, p.Path)
			for _, part := range []string{"mine", "and", started.Command} {
				require.Contains(t, now, part)
			}
			info, err := os.Stat(p.Path)
			require.NoError(t, err)
			require.EqualValues(t, 0o640, info.Mode().Perm())
			left, err := os.ReadDir(filepath.Dir(p.Path))
			require.NoError(t, err)
			require.Len(t, left, 1, "no file is left")

			// Another entry of the name stays.
			write(t, p.Path, strings.ReplaceAll(now, started.Command, "elsewhere"))
			_, err = p.Write()
			require.ErrorIs(t, err, ErrDiffers)
			require.Equal(t, strings.ReplaceAll(now, started.Command, "elsewhere"), text(t, p.Path))

			// What cannot be read stays as it is.
			for _, broken := range []string{"{", "[", "= = =", `{"mcpServers":[],"servers":3,"mcp":"x"}`, "mcp_servers = {}\n{", "\x00"} {
				write(t, p.Path, broken)
				_, err := p.Write()
				require.ErrorIs(t, err, ErrUnreadable, broken)
				require.Equal(t, broken, text(t, p.Path))
			}
		})
	}
	_, err := For("nobody", environment(t), started)
	var unknown *follow.UnknownAgentError
	require.ErrorAs(t, err, &unknown)
}

// TestLinks: no link is followed out of the folder of the configuration, and none is replaced by a file.
func TestLinks(t *testing.T) {
	e := environment(t)
	outside := t.TempDir()
	write(t, filepath.Join(outside, "settings.json"), "{}")
	require.NoError(t, os.MkdirAll(filepath.Join(e.Home, ".gemini"), 0o700))
	require.NoError(t, os.Symlink(filepath.Join(outside, "settings.json"), filepath.Join(e.Home, ".gemini", "settings.json")))
	p, err := For("gemini", e, started)
	require.NoError(t, err)
	_, err = p.Write()
	require.ErrorIs(t, err, lineage.ErrNotRegular)
	require.Equal(t, "{}", text(t, filepath.Join(outside, "settings.json")))

	require.NoError(t, os.MkdirAll(filepath.Join(e.Home, ".config"), 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(e.Home, ".config", "opencode")))
	p, err = For("opencode", e, started)
	require.NoError(t, err)
	_, err = p.Write()
	require.Error(t, err)
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// TestJSONC prefers the file that is there, and keeps a byte order mark.
func TestJSONC(t *testing.T) {
	e := environment(t)
	file := filepath.Join(e.Home, ".config", "opencode", "opencode.jsonc")
	write(t, file, "\ufeff{ // c\n}")
	p, err := For("opencode", e, started)
	require.NoError(t, err)
	require.Equal(t, file, p.Path)
	_, err = p.Write()
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(text(t, file), "\ufeff{"))
	require.Contains(t, text(t, file), "// c")
}

// FuzzAdd adds to any file: what is written has the entry and everything else, or nothing is written.
func FuzzAdd(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"mcpServers":{}}`, `{"a":1,"a":2}`, `{"mcpServers":null}`, "a = 1\n[b]\nc = 2", "[mcp_servers]\n", "[[mcp_servers]]\n", "mcp_servers = {}", "mcp_servers.x = 1", "# c", "a = \"\"\"\n", "// x\n{/**/}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, was []byte) {
		if now, err := addJSON(was, "mcpServers", plainEntry(started)); err == nil {
			got, err := members([]byte(strings.TrimPrefix(string(now), "\ufeff")))
			require.NoError(t, err)
			b, err := json.Marshal(got["mcpServers"].(map[string]any)[Name])
			require.NoError(t, err)
			require.Contains(t, string(b), `"command"`)
		} else {
			require.Nil(t, now)
		}
		if now, err := addTOML(was, started); err == nil {
			var got map[string]any
			_, err := toml.Decode(string(now), &got)
			require.NoError(t, err)
			require.Contains(t, got["mcp_servers"], Name)
		} else {
			require.Nil(t, now)
		}
	})
}
