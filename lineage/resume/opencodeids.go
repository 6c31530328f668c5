package resume

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/internal/vfs"
)

func openCodeClock(t time.Time) uint64 { return uint64(t.UnixMilli()) << 12 }

func openCodeID(clock uint64, suffix string) string {
	return fmt.Sprintf("%012x", clock&(1<<48-1)) + suffix
}

// openCodeSuffix returns random letters and digits.
func openCodeSuffix() string {
	var b [openCodeSuffixSize]byte
	rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = openCodeLetters[int(b[i])%len(openCodeLetters)]
	}
	return string(b[:])
}

// openCodeMessageID returns the id of the n-th message of the session, always the same. It sorts before the ids that
// the program will assign. Ids must be new, because the import leaves out a message or part whose id exists.
func (s *Session) openCodeMessageID(n int64) string {
	return "msg_" + openCodeID(openCodeClock(s.now.Add(-time.Second))+uint64(n), s.ID[len(s.ID)-openCodeSuffixSize:])
}

// openCodePartID returns the id of the n-th part of a message.
func openCodePartID(message string, n int) string {
	id := []byte("prt_" + strings.TrimPrefix(message, "msg_"))
	for i := len(id) - 1; i >= len(id)-5; i-- {
		id[i] = openCodeLetters[n%len(openCodeLetters)]
		n /= len(openCodeLetters)
	}
	return string(id)
}

// openCodeModel is a model as stated in messages of the user.
type openCodeModel struct {
	Provider string `json:"providerID"`
	Model    string `json:"modelID"`
}

// openCodeChoice returns the mode and the model from the settings of the program, or those that it used last if the
// settings name no model. Settings with comments are not read.
func (s *Session) openCodeChoice() (mode string, model openCodeModel) {
	mode, model = "build", openCodeModel{"unknown", "unknown"}
	var recent struct{ Recent []openCodeModel }
	_ = readJSON(filepath.Join(s.environment.Dir("XDG_STATE_HOME", ".local", "state"), "opencode", "model.json"), &recent)
	if len(recent.Recent) > 0 && recent.Recent[0].Provider != "" {
		model = recent.Recent[0]
	}
	for _, name := range []string{"config.json", "opencode.json", "opencode.jsonc"} {
		var config struct {
			Model string
			Agent string `json:"default_agent"`
		}
		_ = readJSON(filepath.Join(s.environment.Dir("XDG_CONFIG_HOME", ".config"), "opencode", name), &config)
		if provider, id, ok := strings.Cut(config.Model, "/"); ok {
			model = openCodeModel{provider, id}
		}
		if config.Agent != "" {
			mode = config.Agent
		}
	}
	return mode, model
}

// readJSON reads a configuration file.
func readJSON(file string, into any) error {
	raw, err := vfs.ReadFile(file, maxConfig)
	if err == nil && !rawjson.Valid(raw) {
		err = errors.New("not JSON")
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// An id of OpenCode is a time in twelve hexadecimal digits, of which the last three count within a millisecond, and
// 14 letters and digits. Ids of sessions decrease with time. Messages are sorted by their times and ids, and the
// parts of a message by their ids.
const (
	openCodeSuffixSize = 14
	openCodeLetters    = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)
