package follow

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// RecordedPath returns the path under which a file is recorded: that of the plain file if it is compressed.
func RecordedPath(path string) string { return strings.TrimSuffix(path, compressedSuffix) }

// compressedSuffix is the suffix of files that an agent has compressed.
const compressedSuffix = ".zst"

// walSuffix is the suffix of the log next to a SQLite database.
const walSuffix = "-wal"

func isDatabase(path string) bool {
	return strings.HasSuffix(path, ".db") || strings.HasSuffix(path, ".vscdb") || strings.HasSuffix(path, ".sqlite")
}

// clineSuffix is the suffix of a session file of Cline, which has a second file with other data of the session.
const clineSuffix = ".messages.json"

// beside returns the path of what is read together with a file, or "": the log of a database, the second file of a
// session of Cline, the messages of OpenCode.
func beside(path string) string {
	if session, ok := strings.CutSuffix(path, clineSuffix); ok {
		return session + ".json"
	}
	if isDatabase(path) {
		return path + walSuffix
	}
	if session, ok := strings.CutSuffix(filepath.Base(path), ".json"); ok && strings.HasPrefix(session, "ses_") {
		return filepath.Join(filepath.Dir(path), "..", "..", "message", session) // the folder of the messages of a session of OpenCode
	}
	return ""
}

// besideOf is the inverse of beside. It returns other names unchanged.
func besideOf(name string) string {
	if base := strings.TrimSuffix(name, ".json"); base != name && !strings.HasSuffix(name, clineSuffix) {
		return base + clineSuffix
	}
	return strings.TrimSuffix(name, walSuffix)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// within reports whether a path is a folder or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
