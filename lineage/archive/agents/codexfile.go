package agents

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage/archive"
)

// errNoBase is returned when the file of the other session is not found.
var errNoBase = errors.New("its file is not found")

// openRollout opens the file of another session. It is in the folder of the input's file or in the folder of another
// day, and may be compressed. Links are not followed.
func openRollout(in *archive.Input, session string) (io.ReadCloser, error) {
	path := in.DiskPath()
	if path == "" || session == "" || strings.Trim(session, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return nil, errNoBase
	}
	type folder struct {
		path string
		days bool // files are in folders by day: sessions/2026/11/28
	}
	dir := filepath.Dir(path)
	folders := []folder{{dir, false}}
	if sessions := filepath.Join(dir, "..", "..", ".."); isDay(dir) {
		folders = append(folders, folder{sessions, true}, folder{filepath.Join(sessions, "..", "archived_sessions"), false})
	} else if filepath.Base(dir) == "archived_sessions" {
		folders = append(folders, folder{filepath.Join(dir, "..", "sessions"), true})
	}
	for _, f := range folders {
		root, err := os.OpenRoot(f.path)
		if err != nil {
			continue
		}
		levels := 0
		if f.days {
			levels = 3
		}
		name := findRollout(root, ".", session, levels)
		if name == "" {
			root.Close()
			continue
		}
		file, err := root.Open(name)
		root.Close()
		if err != nil {
			return nil, err
		}
		info, err := file.Stat()
		if err != nil || !strings.HasSuffix(name, compressedRollout) {
			return file, err
		}
		z, err := archive.Zstd(file)
		if err != nil {
			file.Close()
			return nil, err
		}
		return expanded{in.Expanded(z, info.Size()), z, file}, nil
	}
	return nil, errNoBase
}

// compressedRollout is the file extension of sessions that Codex has compressed.
const compressedRollout = ".jsonl.zst"

// findRollout returns the name of a session's file at most so many levels below a folder, empty if there is none.
func findRollout(root *os.Root, dir, session string, levels int) (found string) {
	opened, err := root.Open(dir)
	if err != nil {
		return ""
	}
	entries, _ := opened.ReadDir(maxStored)
	opened.Close()
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case levels > 0:
			if e.IsDir() {
				if found := findRollout(root, name, session, levels-1); found != "" {
					return found
				}
			}
		case !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), "rollout-"):
		case strings.HasSuffix(e.Name(), "-"+session+".jsonl"):
			return name
		case strings.HasSuffix(e.Name(), "-"+session+compressedRollout):
			found = name
		}
	}
	return found
}

// expanded is an open compressed file.
type expanded struct {
	io.Reader
	decoder io.Closer
	file    io.Closer
}

func (e expanded) Close() error {
	return errors.Join(e.decoder.Close(), e.file.Close())
}

// isDay reports whether the names of a folder and of the two folders above it are numbers, which is how Codex names
// folders by day.
func isDay(dir string) bool {
	for range 3 {
		if _, err := strconv.Atoi(filepath.Base(dir)); err != nil {
			return false
		}
		dir = filepath.Dir(dir)
	}
	return true
}
