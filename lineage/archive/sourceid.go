package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"
)

// An id that is longer than maxID bytes is no source id as it is; shownID bytes of it are.
const (
	maxID   = 256
	shownID = 64
)

// plainID returns the source id for the id of a conversation: the same if it is not longer than most and can be shown,
// as the ids that programs make. Else it is what can be shown of it, and a hash.
func plainID(id string, most int) string {
	if len(id) <= most && utf8.ValidString(id) && !strings.ContainsFunc(id, isUnshown) {
		return id
	}
	shown := strings.Map(func(r rune) rune {
		if isUnshown(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(id[:min(len(id), shownID)], ""))
	return shown + "@" + Mark(id)
}

func isUnshown(r rune) bool { return !unicode.IsPrint(r) }

// Mark returns a hash that distinguishes source ids that begin with the same text: see Conversation.Local.
func Mark(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// marked returns the source id for an id that others may have, with a mark that distinguishes it from theirs.
func marked(id, mark string) string {
	if id == "" || mark == "" {
		return plainID(id, maxID)
	}
	return plainID(id, maxID-len(mark)-1) + "@" + mark
}

// ChosenID returns the source id of a session whose id a person has chosen, so that other sessions may have the same: it
// ends with a hash of how the session began.
func ChosenID(id, began string) string { return marked(id, Mark(began)) }

// IsOf reports whether a source id is that of a session with an id, which may be one that a person has chosen.
func IsOf(sourceID, id string) bool {
	mark := sourceID[strings.LastIndexByte(sourceID, '@')+1:]
	_, err := hex.DecodeString(mark)
	return sourceID == plainID(id, maxID) || err == nil && len(mark) == 12 && sourceID == marked(id, mark)
}

// Identify completes the source id of a conversation: it gets a mark of where it comes from, which is c.Local by
// default, and can be shown.
func (c *Conversation) Identify(mark string) {
	if mark == "" {
		mark = c.Local
	}
	c.SourceID, c.Local, c.ForkedFrom = marked(c.SourceID, mark), "", plainID(c.ForkedFrom, maxID)
}
