package sqlchat

import (
	"context"

	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
)

// Append implements chat.Store.
func (s *store) Append(ctx context.Context, r chat.AppendRequest) (chat.Ref, error) {
	r, err := r.Normal()
	if err != nil {
		return "", err
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		m.CreatedAt = moment(m.CreatedAt)
		if err := chatrows.CheckMessage(s.db, *m); err != nil {
			return "", err
		}
	}
	if r.NewBranch != nil {
		b, err := completeBranch(s.db, *r.NewBranch)
		if err != nil {
			return "", err
		}
		r.NewBranch = &b
	}
	last := chat.Ref(r.Messages[len(r.Messages)-1].ID)
	err = chatrows.Write(ctx, s.db, func(c *sqladapter.Conn) error { return appendTo(ctx, c, r, last) })
	if err != nil {
		return "", storable(s.db, err, chat.SubjectMessage, string(last))
	}
	return last, nil
}

// appendTo performs an append request.
func appendTo(ctx context.Context, c *sqladapter.Conn, r chat.AppendRequest, last chat.Ref) error {
	if err := touch(ctx, c, r.ChatID); err != nil {
		return err
	}
	branchID := r.BranchID
	if r.NewBranch == nil {
		b, err := mustBranch(ctx, c, r.ChatID, branchID)
		if err != nil {
			return err
		}
		if b.HeadMessageID != r.ExpectedHead {
			if err := mustMessage(ctx, c, r.ChatID, r.ExpectedHead); err != nil {
				return err
			}
			return &chat.HeadError{BranchID: branchID, Expected: r.ExpectedHead, Actual: b.HeadMessageID}
		}
	} else {
		branchID = r.NewBranch.ID
		if err := createBranch(ctx, c, *r.NewBranch); err != nil {
			return err
		}
	}
	ids := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		ids[i] = m.ID
	}
	known, err := chatrows.ChatsOf(ctx, c, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if chatID, ok := known[id]; ok {
			reason := chat.ErrExists
			if chatID != r.ChatID {
				reason = chat.ErrOtherChat
			}
			return &chat.Error{Subject: chat.SubjectMessage, ID: id, ChatID: r.ChatID, Err: reason}
		}
	}
	if err := mustKnowSources(ctx, c, r.Messages); err != nil {
		return err
	}
	if err := chatrows.Insert(ctx, c, r.Messages); err != nil {
		return err
	}
	_, err = c.Exec(ctx, branchSQL.move, string(last), branchID)
	return err
}
