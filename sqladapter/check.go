package sqladapter

import (
	"errors"
	"fmt"
	"unicode/utf16"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage/chat"
)

// errUnchanged rolls back a transaction without changes. Write then returns nil.
var errUnchanged = errors.New("nothing to change")

// checkID refuses ids and names that are too long for the database's keys.
func (db *DB) checkID(subject chat.Subject, ids ...string) error {
	for _, id := range ids {
		if detail := db.tooLong(id); detail != "" {
			return &chat.Error{Subject: subject, ID: shortened(id), Err: chat.ErrInvalid, Detail: detail}
		}
	}
	return nil
}

func (db *DB) checkUser(id string) error {
	if detail := db.tooLong(id); detail != "" {
		return fmt.Errorf("user id %q: %s: %w", shortened(id), detail, chat.ErrInvalid)
	}
	return nil
}

// checkMessage refuses messages that are too large for the database.
func (db *DB) checkMessage(m chat.Message) error {
	if err := db.checkID(chat.SubjectMessage, m.ID); err != nil {
		return err
	}
	for _, text := range []string{m.Name, m.Type} {
		if db.limits.IDUnits > 0 && units(text) > db.limits.IDUnits {
			return &chat.Error{
				Subject: chat.SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: chat.ErrInvalid,
				Detail: fmt.Sprintf("name or type of more than %d UTF-16 units", db.limits.IDUnits),
			}
		}
	}
	return nil
}

func (db *DB) tooLong(id string) string {
	if db.escaped {
		id = escapeText(id)
	}
	switch {
	case db.limits.IDBytes > 0 && len(id) > db.limits.IDBytes:
		return fmt.Sprintf("%d bytes, at most %d", len(id), db.limits.IDBytes)
	case db.limits.IDUnits > 0 && units(id) > db.limits.IDUnits:
		return fmt.Sprintf("%d UTF-16 units, at most %d", units(id), db.limits.IDUnits)
	}
	return ""
}

func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

func shortened(id string) string {
	if len(id) <= 64 {
		return id
	}
	return query.Shorten(id, 64) + "…"
}

// storable adds the subject to an error about a value that the database cannot store or confuses
// with another.
func (db *DB) storable(err error, subject chat.Subject, id string) error {
	if err == nil {
		return nil
	}
	switch db.dialect.Classify(err) {
	case Duplicate:
		return &chat.Error{Subject: subject, ID: id, Err: chat.ErrExists, Detail: fmt.Sprintf(
			"%s takes it, or something of its, for one that is there: it may compare without case or spaces at the end (%v)", db.dialect.Name(), err)}
	case Unstorable:
		return &chat.Error{Subject: subject, ID: id, Err: chat.ErrInvalid, Detail: fmt.Sprintf("%s cannot keep it: %v", db.dialect.Name(), err)}
	}
	return err
}
