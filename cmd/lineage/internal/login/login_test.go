package login_test

import (
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/cmd/lineage/internal/login"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

func environment(system, home string) *follow.Environment {
	return &follow.Environment{Home: home, OS: system, Getenv: func(string) string { return "" }}
}

func program(args ...string) *login.Program {
	return &login.Program{Name: "lineage-follow", Title: "Keep the sessions of agents", Args: args}
}

// odd are texts that each system writes in a way of its own.
const odd = `/a b/c'd&e<f>/%h/$HOME/\x/;#é`

func TestSystemd(t *testing.T) {
	p := program("/usr/bin/lineage", "follow", "--store", odd, "", `say "no"`)
	p.Variables = []login.Variable{{Name: "CODEX_HOME", Value: odd}, {Name: "PI", Value: "/p"}}
	e, err := login.For(environment("linux", "/home/ann"), 0, p)
	require.NoError(t, err)
	require.Equal(t, "/home/ann/.config/systemd/user/lineage-follow.service", filepath.ToSlash(e.Path))
	require.Equal(t, []string{"systemctl", "--user", "enable", "--now", "lineage-follow"}, e.Start)
	require.Equal(t, `[Unit]
Description=Keep the sessions of agents

[Service]
Environment="CODEX_HOME=/a b/c'd&e<f>/%%h/$HOME/\\x/;#é"
Environment=PI=/p
ExecStart=/usr/bin/lineage follow --store "/a b/c'd&e<f>/%%h/$$HOME/\\x/;#é" "" "say \"no\""
Restart=on-failure
RestartSec=30
Nice=10

[Install]
WantedBy=default.target
`, e.Text)
	_, err = login.For(environment("linux", "/home/ann"), 0, program("/opt/$x/lineage"))
	require.ErrorIs(t, err, lineage.ErrInvalid)
}

// Systemd reads the unit as it was meant. Its own program for that is not everywhere.
func TestSystemdReadsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	p := program("/bin/true", "--store", odd, `say "no"`)
	p.Variables = []login.Variable{{Name: "CODEX_HOME", Value: odd}}
	home := t.TempDir()
	e, err := login.For(environment("linux", home), 0, p)
	require.NoError(t, err)
	_, err = e.Write()
	require.NoError(t, err)
	verify := func() string {
		c := exec.Command(analyze, "--user", "--man=no", "verify", e.Path)
		c.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+home, "HOME="+home)
		out, _ := c.CombinedOutput() // it may fail for other units
		return string(out)
	}
	require.NotContains(t, verify(), "lineage-follow.service")
	require.NoError(t, os.WriteFile(e.Path, []byte(strings.Replace(e.Text, "ExecStart=/bin/true", `ExecStart=/bin/true "`, 1)), 0o644))
	require.Contains(t, verify(), "lineage-follow.service", "it tells what is wrong")
}

func TestLaunchd(t *testing.T) {
	p := program("/opt/lineage", "follow", "--store", odd)
	p.Variables = []login.Variable{{Name: "CODEX_HOME", Value: odd}}
	e, err := login.For(environment("darwin", "/Users/ann"), 501, p)
	require.NoError(t, err)
	path := "/Users/ann/Library/LaunchAgents/lineage-follow.plist"
	require.Equal(t, path, filepath.ToSlash(e.Path))
	require.Equal(t, []string{"launchctl", "bootstrap", "gui/501", e.Path}, e.Start)
	var texts []string
	decoder := xml.NewDecoder(strings.NewReader(e.Text))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	require.Equal(t, []string{"Label", "lineage-follow", "ProgramArguments", "/opt/lineage", "follow", "--store", odd, "EnvironmentVariables", "CODEX_HOME", odd,
		"RunAtLoad", "KeepAlive", "SuccessfulExit", "ProcessType", "Background"}, texts)
}

func TestStartup(t *testing.T) {
	p := program(`C:\Program Files\lineage.exe`, "follow", "--store", `D:\50%\a&b`)
	p.Variables = []login.Variable{{Name: "CODEX_HOME", Value: `D:\%x%`}}
	e, err := login.For(environment("windows", `C:\Users\ann`), 0, p)
	require.NoError(t, err)
	require.Equal(t, "@echo off\r\nchcp 65001 >nul\r\nset \"CODEX_HOME=D:\\%%x%%\"\r\n"+
		"start \"Keep the sessions of agents\" /min \"C:\\Program Files\\lineage.exe\" follow --store \"D:\\50%%\\a&b\"\r\n", e.Text)
	require.Equal(t, "lineage-follow.cmd", filepath.Base(filepath.FromSlash(e.Path)))
	for _, special := range "&|<>^ ()%!" { // of a command line
		e, err := login.For(environment("windows", `C:\Users\ann`), 0, program("lineage", "a"+string(special)+"b"))
		require.NoError(t, err)
		require.Contains(t, e.Text, ` "a`+strings.ReplaceAll(string(special), "%", "%%")+"b\"\r\n")
	}
	_, err = login.For(environment("windows", `C:\Users\ann`), 0, program("lineage", `a"b`))
	require.ErrorIs(t, err, lineage.ErrInvalid)
}

func TestRefused(t *testing.T) {
	_, err := login.For(environment("plan9", "/"), 0, program("/bin/lineage"))
	require.ErrorIs(t, err, login.ErrUnknownSystem)
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, bad := range []string{"/a\nExecStart=/bin/sh", "/\xff", "/a\x1b[31m"} {
			_, err := login.For(environment(system, "/h"), 0, program("/bin/lineage", bad))
			require.ErrorIs(t, err, lineage.ErrInvalid, system)
			p := program("/bin/lineage")
			p.Variables = []login.Variable{{Name: "A", Value: bad}}
			_, err = login.For(environment(system, "/h"), 0, p)
			require.ErrorIs(t, err, lineage.ErrInvalid, system)
		}
	}
}

// A file is written once. One with other content, and what a link leads to, stay.
func TestWrite(t *testing.T) {
	home := t.TempDir()
	e, err := login.For(environment("linux", home), 0, program("/bin/lineage"))
	require.NoError(t, err)
	for _, want := range []bool{true, false} {
		written, err := e.Write()
		require.NoError(t, err)
		require.Equal(t, want, written)
	}
	other := *e
	other.Text += "#"
	_, err = other.Write()
	require.ErrorIs(t, err, lineage.ErrExists)
	text, err := os.ReadFile(e.Path)
	require.NoError(t, err)
	require.Equal(t, e.Text, string(text))

	require.NoError(t, os.Remove(e.Path))
	outside := filepath.Join(home, "outside")
	require.NoError(t, os.Symlink(outside, e.Path))
	_, err = e.Write()
	require.ErrorIs(t, err, lineage.ErrExists)
	require.NoFileExists(t, outside)
}
