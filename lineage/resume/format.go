package resume

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// stamp returns a time in the format of agents.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func uuidV7() string { return uuid.Must(uuid.NewV7()).String() }
func uuidV4() string { return uuid.NewString() }

// dashed returns the path of a folder in which all characters except letters and digits are replaced. Characters are
// counted as in JavaScript.
func dashed(dir string) string {
	var b strings.Builder
	for _, r := range dir {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case r > 0xFFFF:
			b.WriteString("--")
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

// maxConfig limits the size of an agent's configuration that is read.
const maxConfig = 4 << 20

// maxName is the length up to which agents do not shorten names of folders.
const maxName = 200

// folderName returns an agent's folder name for a directory. It is an error if the name is too long.
func folderName(name, dir string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: %s: its name is too long for the agent's folder of sessions", ErrNoWayIn, dir)
	}
	return name, nil
}

// parentOf returns the parent of a line that follows another one. It is nil for the first line.
func parentOf(above string) *string {
	if above == "" {
		return nil
	}
	return &above
}
