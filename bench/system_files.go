package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// filesSystem stores each branch in a JSON file that is rewritten at each step, like branch
// managers. A fork copies the file.
func filesSystem(durability string) system {
	return system{name: nameFiles, durability: durability, maxLength: 10_000, tooLong: rewrites, open: func(_ context.Context, dir string) (store, error) {
		return &fileStore{dir: dir, sync: durability == full}, nil
	}}
}

type fileStore struct {
	dir  string
	sync bool
	next int
}

type fileMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type branchFile struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Messages []fileMessage `json:"messages"`
}

func (s *fileStore) start(context.Context) (history, error) { return s.create(nil) }

func (s *fileStore) create(messages []fileMessage) (history, error) {
	s.next++
	name := fmt.Sprintf("branch-%d", s.next)
	h := &fileHistory{store: s, branch: branchFile{ID: name, Name: name, Messages: messages}}
	return h, h.save()
}

func (s *fileStore) size() (int64, error) { return diskUse(s.dir) }

func (s *fileStore) close() error { return nil }

type fileHistory struct {
	store  *fileStore
	branch branchFile
}

func (h *fileHistory) path() string { return filepath.Join(h.store.dir, h.branch.ID+".json") }

// save writes a new file and renames it over the old one.
func (h *fileHistory) save() error {
	b, err := json.Marshal(&h.branch)
	if err != nil {
		return err
	}
	f, err := os.Create(h.path() + ".tmp")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	if h.store.sync {
		if err := dataSync(f); err != nil {
			return err
		}
	}
	return os.Rename(h.path()+".tmp", h.path())
}

func (h *fileHistory) extend(_ context.Context, message []byte) error {
	h.branch.Messages = append(h.branch.Messages, fileMessage{roleOf(len(h.branch.Messages)), string(message)})
	return h.save()
}

func (h *fileHistory) load(_ context.Context, messages [][]byte) error {
	for _, m := range messages {
		h.branch.Messages = append(h.branch.Messages, fileMessage{roleOf(len(h.branch.Messages)), string(m)})
	}
	return h.save()
}

func (h *fileHistory) fork(_ context.Context, n int) (history, error) {
	messages := h.branch.Messages
	if n > 0 {
		messages = messages[:n]
	}
	return h.store.create(slices.Clone(messages))
}

func (h *fileHistory) read(_ context.Context, last int) (int, error) {
	b, err := os.ReadFile(h.path())
	if err != nil {
		return 0, err
	}
	var branch branchFile
	if err := json.Unmarshal(b, &branch); err != nil {
		return 0, err
	}
	if n := len(branch.Messages); last > 0 && n > last {
		return last, nil
	}
	return len(branch.Messages), nil
}
