package chat

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage/backend"
)

// MaxID is the maximum size of an id or a name, in bytes. An implementation may have a lower limit.
const MaxID = 4096

// The Check methods refuse what no store accepts, with ErrInvalid or ErrOwnParent. Implementations call them before
// they read anything.

// Check checks a new chat.
func (c Chat) Check() error {
	return cmp.Or(checkID(SubjectChat, "id", c.ID), ChatUpdate{UserID: &c.UserID, Title: &c.Title, Metadata: c.Metadata}.Check())
}

// CheckOpen returns an error if the existing chat has another user than c.
func (c Chat) CheckOpen(stored Chat) error {
	switch stored.UserID {
	case c.UserID:
		return nil
	case "":
		return &Error{Subject: SubjectChat, ID: c.ID, Err: ErrNoUser, Detail: "UpdateChat sets one"}
	}
	return &Error{Subject: SubjectChat, ID: c.ID, Err: ErrOtherUser}
}

// Check checks an update.
func (u ChatUpdate) Check() error {
	if u.Metadata != nil && !rawjson.Valid(u.Metadata) {
		return fmt.Errorf("metadata of a chat is not JSON: %w", ErrInvalid)
	}
	return cmp.Or(checkText("user id", u.UserID), checkText("title", u.Title))
}

// CheckUser returns an error if an update sets another user than the one that the chat has.
func (u ChatUpdate) CheckUser(chatID, userID string) error {
	if u.UserID == nil || userID == "" || *u.UserID == userID {
		return nil
	}
	return &Error{Subject: SubjectChat, ID: chatID, Err: ErrOtherUser}
}

// Check checks options.
func (o ListOptions) Check() error {
	if o.Limit < 0 || o.Offset < 0 {
		return fmt.Errorf("limit %d, offset %d: %w", o.Limit, o.Offset, ErrInvalid)
	}
	if len(o.Metadata) > backend.MaxMetadata {
		return fmt.Errorf("more than %d values of metadata: %w", backend.MaxMetadata, ErrInvalid)
	}
	for _, f := range o.Metadata {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

// Check checks a new message.
func (m Message) Check() error {
	if err := checkID(SubjectMessage, "id", m.ID); err != nil {
		return err
	}
	refuse := func(err error, detail string) error {
		return &Error{Subject: SubjectMessage, ID: m.ID, ChatID: m.ChatID, Err: err, Detail: detail}
	}
	switch {
	case string(m.ParentID) == m.ID:
		return refuse(ErrOwnParent, "")
	case m.Name == "":
		return refuse(ErrInvalid, "no name")
	case !rawjson.Valid(m.Data):
		return refuse(ErrInvalid, "data is not JSON")
	}
	o := &m.Origin
	return cmp.Or(
		checkText("name", &m.Name), checkText("type", &m.Type), checkText("user id", &o.UserID), checkText("model id", &o.ModelID),
		checkText("source id", &o.SourceID), checkText("derived from", &o.DerivedFrom),
	)
}

// Check checks a new branch.
func (b Branch) Check() error { return checkNamed(SubjectBranch, b.ID, b.Name) }

// Check checks a new checkpoint.
func (c Checkpoint) Check() error { return checkNamed(SubjectCheckpoint, c.ID, c.Name) }

// checkNamed checks a name, and an id if it is not empty.
func checkNamed(subject Subject, id, name string) error {
	err := checkID(subject, "name", name)
	if id != "" {
		err = cmp.Or(checkID(subject, "id", id), err)
	}
	return err
}

// Normal checks the request as far as possible without a store. It returns the request with the chat and parents of
// its messages filled in.
func (r AppendRequest) Normal() (AppendRequest, error) {
	if len(r.Messages) == 0 {
		return r, fmt.Errorf("append to chat %q: no messages: %w", r.ChatID, ErrInvalid)
	}
	parent := r.ExpectedHead
	if r.NewBranch != nil {
		if r.BranchID != "" || r.ExpectedHead != "" {
			return r, fmt.Errorf("append to chat %q: both a branch and a new one: %w", r.ChatID, ErrInvalid)
		}
		b := *r.NewBranch
		b.ChatID = r.ChatID
		if err := b.Check(); err != nil {
			return r, err
		}
		r.NewBranch, parent = &b, b.HeadMessageID
	}
	messages, seen := make([]Message, len(r.Messages)), make(map[string]bool, len(r.Messages))
	for i, m := range r.Messages {
		m.ChatID, m.ParentID = r.ChatID, parent
		if err := m.Check(); err != nil {
			return r, err
		}
		if seen[m.ID] {
			return r, &Error{Subject: SubjectMessage, ID: m.ID, ChatID: r.ChatID, Err: ErrInvalid, Detail: "twice in one request"}
		}
		seen[m.ID] = true
		messages[i], parent = m, Ref(m.ID)
	}
	r.Messages = messages
	return r, nil
}

func checkID(subject Subject, what, id string) error {
	detail := ""
	switch {
	case id == "":
		detail = "no " + what
	case len(id) > MaxID:
		detail = fmt.Sprintf("%s of %d bytes, at most %d", what, len(id), MaxID)
		id = strings.ToValidUTF8(id[:64], "") + "…"
	case checkText(what, &id) != nil:
		detail = what + " is not text"
	default:
		return nil
	}
	return &Error{Subject: subject, ID: id, Err: ErrInvalid, Detail: detail}
}

// checkText refuses text that databases cannot store. A nil text is allowed.
func checkText(what string, s *string) error {
	if s != nil && (!utf8.ValidString(*s) || strings.ContainsRune(*s, 0)) {
		return fmt.Errorf("%s %.64q is not text: %w", what, *s, ErrInvalid)
	}
	return nil
}
