package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// chatFile is a file in a store that names the chosen chat, with a checksum. It is a
// preference of the command line and unknown to the store.
const chatFile = "current-chat"

// currentChat returns the chat that commands work on, nil while there is none.
func (s *session) currentChat(ctx context.Context) (*lineage.Thread, error) {
	if name := s.namedChat(); name != "" {
		return refs.New(s.store, nil).Thread(ctx, name)
	}
	id, err := s.chosenChat()
	if err != nil {
		return nil, err
	}
	if !id.IsZero() {
		t, err := s.store.Thread(ctx, id)
		if !errors.Is(err, lineage.ErrNotFound) { // it may have been deleted
			return t, err
		}
	}
	return s.latestChat(ctx)
}

// chosenChat returns the chat that was chosen, zero if none was. A file that is damaged is
// an error: a message must not go to another chat.
func (s *session) chosenChat() (lineage.ThreadID, error) {
	path := filepath.Join(s.dir, chatFile)
	b, err := vfs.ReadFile(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return lineage.ThreadID{}, nil
	}
	if err != nil {
		return lineage.ThreadID{}, fmt.Errorf("current chat: %w", err)
	}
	text, _, _ := strings.Cut(string(b), " ")
	id, err := structure.ParseID[lineage.ThreadID](text)
	if err != nil || string(b) != chosen(id) {
		return lineage.ThreadID{}, hint(fmt.Errorf("%s: %w", path, lineage.ErrCorrupt), "'lineage chat use CHAT' chooses the current chat again")
	}
	return id, nil
}

// chosen returns the bytes of chatFile.
func chosen(id lineage.ThreadID) string {
	return fmt.Sprintf("%s %08x\n", id, crc32.ChecksumIEEE(id[:]))
}

// latestChat returns the chat that was updated last, which is the first that is listed; nil
// while there is none.
func (s *session) latestChat(ctx context.Context) (*lineage.Thread, error) {
	for t, err := range s.store.Threads(ctx, lineage.ThreadQuery{}) {
		if err != nil {
			return nil, err
		}
		return t.Thread, nil
	}
	return nil, nil
}

// useChat makes a chat the one that commands work on.
func (s *session) useChat(id lineage.ThreadID) error {
	path := filepath.Join(s.dir, chatFile)
	temporary, err := os.CreateTemp(s.dir, chatFile+".*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if _, err := temporary.WriteString(chosen(id)); err != nil {
		return errors.Join(err, temporary.Close())
	}
	if err := temporary.Close(); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
