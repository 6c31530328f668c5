package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lineage-store/lineage/cmd/lineage/internal/refs"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// chatFile is a file in a store that names the chosen chat, with a checksum. It is a
// preference of the command line and unknown to the store.
const chatFile = "current-chat"

// maxLatest bounds how many commits are read to find the chat that changed last.
const maxLatest = 4096

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

// latestChat returns the chat that changed last, which is the first that is listed; nil
// while there is none. It reads commits from the last one back.
func (s *session) latestChat(ctx context.Context) (*lineage.Thread, error) {
	head, err := s.store.View().Head(ctx)
	if err != nil {
		return nil, err
	}
	read := uint64(0)
	for end, n := head.Number, uint64(1); end > 0 && read < maxLatest; n *= 4 {
		n = min(n, end)
		found, err := s.latestIn(ctx, end-n+1, end)
		if errors.Is(err, lineage.ErrCorrupt) {
			break
		}
		if found != nil || err != nil {
			return found, err
		}
		end, read = end-n, read+n
	}
	return s.latestByTime(ctx)
}

// latestIn returns the chat that changed last in a range of commits, of those that still
// exist.
func (s *session) latestIn(ctx context.Context, first, last uint64) (*lineage.Thread, error) {
	var changed []structure.Record
	for c, err := range s.store.View().Feed(ctx, lineage.Cursor{Number: first - 1}) {
		if err != nil {
			return nil, err
		}
		if c.Number > last {
			break
		}
		for _, r := range c.Records {
			switch r.(type) {
			case *structure.Thread, *structure.Context, *structure.Tip:
				changed = append(changed, r)
			}
		}
	}
	seen := make(map[lineage.ThreadID]bool)
	for i := len(changed) - 1; i >= 0; i-- {
		id, err := s.threadOf(ctx, changed[i])
		if errors.Is(err, lineage.ErrNotFound) || err == nil && (id.IsZero() || seen[id]) {
			continue
		}
		if err != nil {
			return nil, err
		}
		seen[id] = true
		if t, err := s.store.Thread(ctx, id); !errors.Is(err, lineage.ErrNotFound) {
			return t, err
		}
	}
	return nil, nil
}

// threadOf returns the chat that a record changed, zero for none.
func (s *session) threadOf(ctx context.Context, r structure.Record) (lineage.ThreadID, error) {
	id := lineage.ContextID{}
	switch r := r.(type) {
	case *structure.Thread:
		return r.ID, nil
	case *structure.Context:
		id = r.ID
	case *structure.Tip:
		id = r.Context
	}
	// A context that was deleted changed nothing that is left.
	c, err := s.store.View().Context(ctx, id)
	return c.Thread, err
}

// latestByTime returns the chat with the latest time of a change. It looks at all.
func (s *session) latestByTime(ctx context.Context) (*lineage.Thread, error) {
	times := make(map[lineage.ThreadID]time.Time)
	for t, err := range s.store.View().Threads(ctx, lineage.ThreadID{}) {
		if err != nil {
			return nil, err
		}
		times[t.ID] = t.UpdatedAt
	}
	for c, err := range s.store.View().Contexts(ctx, lineage.ThreadID{}, lineage.ContextID{}) {
		if err != nil {
			return nil, err
		}
		if is, ok := times[c.Thread]; ok && is.UnixMilli() < c.MovedAt {
			times[c.Thread] = time.UnixMilli(c.MovedAt)
		}
	}
	var latest lineage.ThreadID
	for id, is := range times {
		if latest.IsZero() || cmp.Or(is.Compare(times[latest]), bytes.Compare(id[:], latest[:])) > 0 {
			latest = id
		}
	}
	if latest.IsZero() {
		return nil, nil
	}
	return s.store.Thread(ctx, latest)
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
