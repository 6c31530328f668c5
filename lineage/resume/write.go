package resume

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/follow"
)

// marshal returns a value as JSON in one line, without escapes for HTML.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Size is the size of a session's file.
type Size struct{ Lines, Bytes int64 }

// Content writes the content of the session's file, which is always the same.
func (s *Session) Content(ctx context.Context, to io.Writer) (size Size, err error) {
	w := bufio.NewWriter(to)
	put := func(separator string, raw []byte) error {
		size.Lines++
		size.Bytes += int64(len(separator)+len(raw)) + 1
		_, _ = w.WriteString(separator)
		_, _ = w.Write(raw)
		return w.WriteByte('\n') // the writer keeps the first error
	}
	var tail []byte
	if s.format.frame != nil {
		head, end, err := s.format.frame(s)
		if err == nil {
			err = put("", head)
		}
		if err != nil {
			return size, err
		}
		tail = end
	}
	line := func(raw []byte) error {
		if tail != nil && size.Lines > 1 {
			return put(",", raw)
		}
		return put("", raw)
	}
	if s.own != nil {
		if err := s.ownEdited(ctx, line); err != nil {
			return size, err
		}
	}
	for _, raw := range s.made {
		if err := line(raw); err != nil {
			return size, err
		}
	}
	if tail != nil {
		if err := put("", tail); err != nil {
			return size, err
		}
	}
	return size, w.Flush()
}

// remember keeps in the store what the session was made of, so that a follower makes it a branch of the thread. A store that cannot
// be changed does not know it: then the session becomes a thread.
func (s *Session) remember(ctx context.Context) error {
	if s.about.thread.IsZero() {
		return nil
	}
	r := follow.Resumed{Agent: s.Agent.Name, Thread: s.about.thread, At: s.history.tip}
	if s.format.marked {
		r.Suffix = s.mark()
	} else {
		sum := sha256.New()
		size, err := s.Content(ctx, sum)
		if err != nil {
			return err
		}
		r.Lines, r.Bytes, r.Digest = size.Lines, size.Bytes, hex.EncodeToString(sum.Sum(nil))
		r.Own = size.Lines - int64(len(s.made))
	}
	if err := follow.RememberResumed(ctx, s.history.store, s.ID, r); err != nil && !errors.Is(err, lineage.ErrReadOnly) {
		return err
	}
	return nil
}

// markSize is how much of the end of a session's id ends the ids of its messages: see sessionFormat.marked. It is random.
const markSize = 12

func (s *Session) mark() string { return s.ID[len(s.ID)-markSize:] }

// File returns the path of the session's file.
func (s *Session) File() string { return filepath.Join(s.Root, filepath.FromSlash(s.Path)) }

// Write remembers in the store what the session is made of, and creates the session's file. If the agent needs it to find
// the session, Write also creates a file that names the folder. The names must be free. Links below Root are not followed
// out of it. A file that cannot be written completely is removed.
func (s *Session) Write(ctx context.Context) (size Size, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("session %s: %w", s.ID, err)
		}
	}()
	if err := s.remember(ctx); err != nil {
		return size, err
	}
	if err := os.MkdirAll(s.Root, 0o700); err != nil {
		return size, err
	}
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return size, err
	}
	defer root.Close()
	for _, f := range s.also {
		if err := f.exclusive(root); err != nil {
			return size, err
		}
	}
	if err := root.MkdirAll(path.Dir(s.Path), 0o700); err != nil {
		return size, err
	}
	f, err := root.OpenFile(s.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return size, err
	}
	size, err = s.Content(ctx, f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = root.Remove(s.Path)
		return size, err
	}
	return size, nil
}
