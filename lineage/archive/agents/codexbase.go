package agents

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/archive"
)

// rolloutBase is the position in another session's file at which a session of Codex was forked by reference.
type rolloutBase struct {
	session string
	// ordinal is the number of the first line after the fork, offset where that line begins; -1 if not stated.
	ordinal, offset int64
}

// maxBases limits the chain of sessions that were forked from one another.
const maxBases = 64

// errNoBase is returned when the file of the other session is not found.
var errNoBase = errors.New("its file is not found")

func rolloutBaseOf(raw []byte) rolloutBase {
	number := func(key string) int64 {
		n, err := strconv.ParseInt(string(rawjson.Get(raw, key)), 10, 64)
		if err != nil || n < 0 {
			return -1
		}
		return n
	}
	return rolloutBase{rawjson.Str(rawjson.Get(raw, "thread_id")), number("end_ordinal_exclusive"), number("end_byte_offset")}
}

// begins adds the messages of the other session up to the fork. They equal the messages in that session's file, so
// the store has them once.
func (r *rollout) begins(base rolloutBase, at archive.Position) {
	if base.session == "" {
		return
	}
	if r.base == nil {
		left := r.in.MaxItem()
		r.base = func(of rolloutBase) ([]archive.Node, error) { return r.baseNodes(of, nil, &left) }
	}
	r.part.ForkedFrom = base.session
	nodes, err := r.base(base)
	if err != nil {
		r.missing = err
		at.Inside = "history_base"
		if errors.Is(err, errNoBase) || errors.Is(err, errShort) {
			err = &archive.ElsewhereError{SourceID: base.session, Err: err}
		} else {
			err = archive.Malformed("its beginning is only in session %s: %v; it begins here", base.session, err)
		}
		r.part.Skip(at, err)
		return
	}
	for i := range nodes {
		nodes[i].At = at
	}
	r.part.Nodes = append(r.part.Nodes, nodes...)
}

// errShort is returned when the file of the other session ends before the fork.
var errShort = errors.New("its file does not have that part")

// baseNodes returns the messages of a session up to a line, preceded by those of the sessions that it was forked
// from. left is the number of bytes that may still be read, over all of them.
func (r *rollout) baseNodes(base rolloutBase, before []string, left *int64) ([]archive.Node, error) {
	if slices.Contains(before, base.session) || base.session == r.id || len(before) == maxBases {
		return nil, archive.Malformed("session %s begins in itself", base.session)
	}
	file, err := r.openBase(base.session)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	of := rollout{session: newSession(r.in, r.yield), base: func(of rolloutBase) ([]archive.Node, error) {
		return r.baseNodes(of, append(before, base.session), left)
	}}
	lines := bufio.NewReaderSize(io.LimitReader(file, *left+1), 64<<10)
	offset, last, done := int64(0), int64(-1), false
	for base.offset < 0 || offset < base.offset {
		raw, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("session %s: %w", base.session, err)
		}
		offset += int64(len(raw))
		if *left -= int64(len(raw)); *left < 0 {
			return nil, archive.TooLarge("beginning of a session", r.in.MaxItem()-*left, r.in.MaxItem())
		}
		if at := rawjson.SkipSpace(raw, 0); rawjson.Check(raw) == nil && rawjson.IsObject(raw[at:]) {
			raw = raw[at:]
			if n, numbered := strconv.ParseInt(string(rawjson.Get(raw, "ordinal")), 10, 64); numbered == nil {
				if done = base.ordinal >= 0 && n >= base.ordinal; done {
					break
				}
				last = n
			}
			_ = of.line(raw, archive.Position{}) // damage is reported when that file is read
		}
		if err == io.EOF {
			break
		}
	}
	if of.missing != nil {
		return nil, of.missing
	}
	if of.id != base.session {
		return nil, errNoBase // the file belongs to another session
	}
	if !done && (base.offset >= 0 && offset != base.offset || base.offset < 0 && (base.ordinal < 0 || last != base.ordinal-1)) {
		return nil, errShort
	}
	return slices.DeleteFunc(of.part.Nodes, func(n archive.Node) bool { return n.Aside != "" }), nil
}

// openBase opens the file of another session. It is in the folder of this session's file or in the folder of another
// day, and may be compressed. Links are not followed.
func (r *rollout) openBase(session string) (io.ReadCloser, error) {
	path := r.in.DiskPath()
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
		return expanded{r.in.Expanded(z, info.Size()), z, file}, nil
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
