package chatrows

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/query"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
)

// CheckID refuses ids and names that the database cannot have as keys.
func CheckID(db *sqladapter.DB, subject chat.Subject, ids ...string) error {
	for _, id := range ids {
		if detail := unfit(db, id); detail != "" {
			return &chat.Error{Subject: subject, ID: Shortened(id), Err: chat.ErrInvalid, Detail: detail}
		}
	}
	return nil
}

// CheckUser refuses user ids that the database cannot have as keys.
func CheckUser(db *sqladapter.DB, id string) error {
	if detail := unfit(db, id); detail != "" {
		return fmt.Errorf("user id %q: %s: %w", Shortened(id), detail, chat.ErrInvalid)
	}
	return nil
}

// CheckMessage refuses messages that are too large for the database.
func CheckMessage(db *sqladapter.DB, m chat.Message) error {
	if err := CheckID(db, chat.SubjectMessage, m.ID); err != nil {
		return err
	}
	most := db.Dialect().Limits().IDUnits
	for _, text := range []string{m.Name, m.Type} {
		if most > 0 && units(text) > most {
			return &chat.Error{
				Subject: chat.SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: chat.ErrInvalid,
				Detail: fmt.Sprintf("name or type of more than %d UTF-16 units", most),
			}
		}
	}
	return nil
}

// unfit returns why an id cannot be a key, empty if it can.
func unfit(db *sqladapter.DB, id string) string {
	limits := db.Dialect().Limits()
	id = db.Written(id)
	switch {
	case !utf8.ValidString(id):
		return "not UTF-8"
	case limits.IDBytes > 0 && len(id) > limits.IDBytes:
		return fmt.Sprintf("%d bytes, at most %d", len(id), limits.IDBytes)
	case limits.IDUnits > 0 && units(id) > limits.IDUnits:
		return fmt.Sprintf("%d UTF-16 units, at most %d", units(id), limits.IDUnits)
	}
	return ""
}

// units returns the number of UTF-16 units of a text.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// Shortened returns an id for a message to people.
func Shortened(id string) string {
	if len(id) <= 64 {
		return id
	}
	return query.Shorten(id, 64) + "…"
}
