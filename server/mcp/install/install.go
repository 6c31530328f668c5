// Package install adds a server of the Model Context Protocol to the configuration of coding agents: an entry that
// states which program to start.
//
// Everything else in a file is kept, including comments and order. A file that cannot be read in its format is not
// changed, nor is an existing entry of the same name with other content.
package install

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

// maxConfiguration limits the size of a configuration file, in bytes.
const maxConfiguration = 16 << 20

// Plan is what has to be added for an agent.
type Plan struct {
	Agent string
	// Command is the command that adds the entry, for an agent that has one. The other fields are then empty.
	Command []string
	// Text is the entry alone, in the form of the configuration file. Path is the file.
	Text, Path string

	base, name string // a folder that links must not lead out of, and the file below it
	add        func(was []byte) ([]byte, error)
}

// agent describes the configuration of an agent.
type agent struct {
	// base and name return the folder of the configuration, and the file below it.
	base func(*follow.Environment) string
	name string
	// other, when not empty, is used instead of name if it exists.
	other string
	add   func(was []byte, s Server) ([]byte, error)
}

// agents are the agents with a configuration file.
var agents = map[string]agent{
	"codex":    {base: inHome("CODEX_HOME", ".codex"), name: "config.toml", add: addTOML},
	"opencode": {base: inConfig, name: "opencode/opencode.json", other: "opencode/opencode.jsonc", add: jsonAdder("mcp", opencodeEntry)},
	"copilot":  {base: inHome("COPILOT_HOME", ".copilot"), name: "mcp-config.json", add: jsonAdder("mcpServers", copilotEntry)},
	"vscode":   {base: inCode, name: "mcp.json", add: jsonAdder("servers", vscodeEntry)},
	"qwen":     {base: inHome("QWEN_HOME", ".qwen"), name: "settings.json", add: jsonAdder("mcpServers", plainEntry)},
	"cursor":   {base: inHome("", ".cursor"), name: "mcp.json", add: jsonAdder("mcpServers", plainEntry)},
	"gemini":   {base: func(e *follow.Environment) string { return filepath.Join(e.Dir("GEMINI_CLI_HOME"), ".gemini") }, name: "settings.json", add: jsonAdder("mcpServers", plainEntry)},
}

// without are agents that cannot use a server, with the reason.
var without = map[string]error{"pi": ErrNoServers, "openclaw": ErrNoServers}

// inHome returns a function that returns the folder in an environment variable, or else one below the home directory.
func inHome(variable, folder string) func(*follow.Environment) string {
	return func(e *follow.Environment) string {
		if variable != "" && filepath.IsAbs(e.Getenv(variable)) {
			return e.Getenv(variable)
		}
		return filepath.Join(e.Home, folder)
	}
}

func inConfig(e *follow.Environment) string {
	if dir := e.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(e.Home, ".config")
}

func inCode(e *follow.Environment) string {
	switch e.OS {
	case "darwin":
		return filepath.Join(e.Home, "Library", "Application Support", "Code", "User")
	case "windows":
		return filepath.Join(cmp.Or(e.Getenv("APPDATA"), filepath.Join(e.Home, "AppData", "Roaming")), "Code", "User")
	}
	return filepath.Join(inConfig(e), "Code", "User")
}

// For returns what has to be added for an agent. name is its name in package follow.
func For(name string, e *follow.Environment, s Server) (*Plan, error) {
	if name == "claude-code" {
		return &Plan{Agent: name, Command: append([]string{"claude", "mcp", "add", "--scope", "user", Name, "--", s.Command}, s.Args...)}, nil
	}
	agent, known := agents[name]
	if !known {
		for _, other := range follow.Agents() {
			if other.Name == name {
				return nil, fmt.Errorf("%s: %w", other.Title, cmp.Or(without[name], ErrByHand))
			}
		}
		return nil, &follow.UnknownAgentError{Name: name}
	}
	p := &Plan{Agent: name, base: agent.base(e), name: agent.name, add: func(was []byte) ([]byte, error) { return agent.add(was, s) }}
	if agent.other != "" {
		if _, err := os.Lstat(filepath.Join(p.base, filepath.FromSlash(agent.other))); err == nil {
			p.name = agent.other
		}
	}
	p.Path = filepath.Join(p.base, filepath.FromSlash(p.name))
	text, err := p.add(nil)
	p.Text = string(text)
	return p, err
}

// Write adds the entry to the file. It returns false if the file has the entry already. Links are not followed out of
// the folder of the configuration, and a file that is a link is not replaced.
func (p *Plan) Write() (changed bool, err error) {
	if p.add == nil {
		return false, fmt.Errorf("%s: %w: it has a command of its own", p.Agent, errors.ErrUnsupported)
	}
	if err := os.MkdirAll(p.base, 0o700); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(p.base)
	if err != nil {
		return false, err
	}
	defer root.Close()
	was, mode, err := read(root, p.name)
	if err != nil {
		return false, fmt.Errorf("%s: %w", p.Path, err)
	}
	now, err := p.add(was)
	if err != nil {
		return false, fmt.Errorf("%s: %w", p.Path, err)
	}
	if string(now) == string(was) {
		return false, nil
	}
	if err := replace(root, p.name, was, now, mode); err != nil {
		return false, fmt.Errorf("%s: %w", p.Path, err)
	}
	return true, nil
}

// read returns the content and mode of a file. The content is nil if there is no file.
func read(root *os.Root, name string) ([]byte, fs.FileMode, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0o600, nil
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%w: a link or not a file", lineage.ErrNotRegular)
	case info.Size() > maxConfiguration:
		return nil, 0, fmt.Errorf("%d bytes: %w", info.Size(), lineage.ErrTooLarge)
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfiguration+1))
	if b == nil {
		b = []byte{}
	}
	return b, info.Mode().Perm(), err
}

// replace replaces the content of a file atomically, if it is still as expected.
func replace(root *os.Root, name string, was, content []byte, mode fs.FileMode) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	var random [8]byte
	rand.Read(random[:]) // never fails
	temporary := name + ".lineage-" + hex.EncodeToString(random[:])
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		// The agent may have written the file in the meantime.
		var now []byte
		if now, _, err = read(root, name); err == nil && string(now) != string(was) {
			err = fmt.Errorf("%w: it was changed by another program just now", lineage.ErrConflict)
		}
	}
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return nil
}
