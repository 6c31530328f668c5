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

	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/vfs"
	"github.com/lineage-store/lineage/lineage/archive"
)

// rolloutBase says where a session of Codex begins that was forked by reference: in the file of another one.
type rolloutBase struct {
	session string
	// ordinal is the number of the first line that is not part of it, and offset where that line begins; -1 where it is not stated.
	ordinal, offset int64
}

// maxBases limits how many files a session begins in.
const maxBases = 64

// errNoBase is why the beginning of a session is not read.
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

// begins adds the messages of another session up to where this one was forked from it. They are those of its file, so that the store
// has them once.
func (r *rollout) begins(base rolloutBase, at archive.Position) {
	if base.session == "" {
		return
	}
	if r.base == nil {
		r.base = func(of rolloutBase) ([]archive.Node, error) { return r.baseNodes(of, nil) }
	}
	r.part.ForkedFrom = base.session
	nodes, err := r.base(base)
	if err != nil {
		r.missing = err
		at.Inside = "history_base"
		r.part.Repairs = append(r.part.Repairs, archive.Damaged(at, archive.Malformed("its beginning is only in session %s: %v; it begins here", base.session, err)))
		return
	}
	for i := range nodes {
		nodes[i].At = at
	}
	r.part.Nodes = append(r.part.Nodes, nodes...)
}

// baseNodes returns the messages of a session up to a line, after those of the sessions that it was forked from itself.
func (r *rollout) baseNodes(base rolloutBase, before []string) ([]archive.Node, error) {
	if slices.Contains(before, base.session) || base.session == r.id || len(before) == maxBases {
		return nil, archive.Malformed("session %s begins in itself", base.session)
	}
	file, err := r.openBase(base.session)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	of := rollout{session: newSession(r.in, r.yield), base: func(of rolloutBase) ([]archive.Node, error) {
		return r.baseNodes(of, append(before, base.session))
	}}
	lines := bufio.NewReaderSize(io.LimitReader(file, r.in.MaxItem()+1), 64<<10)
	for offset := int64(0); base.offset < 0 || offset < base.offset; {
		raw, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fmt.Errorf("session %s: %w", base.session, err)
		}
		if offset += int64(len(raw)); offset > r.in.MaxItem() {
			return nil, archive.TooLarge("beginning of a session", offset, r.in.MaxItem())
		}
		if rawjson.Check(raw) == nil && rawjson.IsObject(raw[rawjson.SkipSpace(raw, 0):]) {
			raw = raw[rawjson.SkipSpace(raw, 0):]
			if n, numbered := strconv.ParseInt(string(rawjson.Get(raw, "ordinal")), 10, 64); numbered == nil && base.ordinal >= 0 && n >= base.ordinal {
				break
			}
			_ = of.line(raw, archive.Position{}) // what is broken is reported where the file is read
		}
		if err == io.EOF {
			break
		}
	}
	if of.missing != nil {
		return nil, of.missing
	}
	return slices.DeleteFunc(of.part.Nodes, func(n archive.Node) bool { return n.Aside != "" }), nil
}

// openBase opens the file of another session. It is beside that of this one, or in the folder of another day, and may be compressed.
func (r *rollout) openBase(session string) (io.ReadCloser, error) {
	path := r.in.DiskPath()
	if path == "" || session == "" || strings.Trim(session, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return nil, errNoBase
	}
	dir := filepath.Dir(path)
	places := []string{literalGlob(dir)}
	if root := filepath.Join(dir, "..", "..", ".."); isDay(dir) { // sessions/2026/11/28, beside archived_sessions
		places = append(places, filepath.Join(literalGlob(root), "*", "*", "*"), filepath.Join(literalGlob(filepath.Dir(root)), "archived_sessions"))
	} else if filepath.Base(dir) == "archived_sessions" {
		places = append(places, filepath.Join(literalGlob(filepath.Dir(dir)), "sessions", "*", "*", "*"))
	}
	for _, place := range places {
		for _, ending := range []string{".jsonl", ".jsonl.zst"} {
			found, _ := filepath.Glob(filepath.Join(place, "rollout-*"+session+ending)) // the pattern is valid
			for _, name := range found {
				if !strings.HasSuffix(strings.TrimSuffix(name, ending), "-"+session) {
					continue
				}
				file, err := vfs.OpenFile(name, os.O_RDONLY)
				if err != nil || ending == ".jsonl" {
					return file, err
				}
				z, err := zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(256<<20))
				if err != nil {
					file.Close()
					return nil, err
				}
				return expanded{z, file}, nil
			}
		}
	}
	return nil, errNoBase
}

// expanded is a file that is compressed.
type expanded struct {
	*zstd.Decoder
	file io.Closer
}

func (e expanded) Close() error {
	e.Decoder.Close()
	return e.file.Close()
}

// isDay reports whether the names of a folder and of the two above it are numbers, as Codex names folders by the day.
func isDay(dir string) bool {
	for range 3 {
		if _, err := strconv.Atoi(filepath.Base(dir)); err != nil {
			return false
		}
		dir = filepath.Dir(dir)
	}
	return true
}

// literalGlob returns a pattern that matches one path.
func literalGlob(path string) string {
	if filepath.Separator == '\\' {
		return path // where the character that would escape separates names
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
