package threads

import (
	"context"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/screen"
	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/lineage/records"
)

// UserToDelete implements Keeper.
func (s InStore) UserToDelete(ctx context.Context, user string) (*app.Destruction, error) {
	threads, values, ofCurrent := 0, 0, false
	for t, err := range s.Store.Threads(ctx, lineage.ThreadQuery{User: &user}) {
		if err != nil {
			return nil, err
		}
		threads++
		ofCurrent = ofCurrent || s.Thread != nil && s.Thread.ID() == t.ID()
	}
	for _, err := range s.Store.Values(lineage.Owner{Scope: lineage.UserScope, Name: user}).All(ctx, "") {
		if err != nil {
			return nil, err
		}
		values++
	}
	if threads+values == 0 {
		return nil, noSuchUser(user)
	}
	return &app.Destruction{
		What: deleteUserText(user, threads, values),
		Do: func(ctx context.Context) error {
			done, err := s.Store.DeleteUser(ctx, user)
			if err != nil {
				return deletedInPart(err, done.Threads)
			}
			err = printDeletedUser(s.App, &records.Deleted{What: "user", Name: user, Threads: done.Threads, Messages: done.Messages, Values: done.Values})
			if err != nil || !ofCurrent {
				return err
			}
			return noteCurrent(ctx, s.OpenStore)
		},
	}, nil
}

// UserToDelete implements Keeper. A database keeps no values.
func (d *database) UserToDelete(ctx context.Context, user string) (*app.Destruction, error) {
	var ids []string
	for c, err := range d.chats.ListChats(ctx, chat.ListOptions{UserID: user}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, c.ID)
	}
	if len(ids) == 0 {
		return nil, noSuchUser(user)
	}
	return &app.Destruction{
		What: deleteUserText(user, len(ids), 0),
		Do: func(ctx context.Context) error {
			r := &records.Deleted{What: "user", Name: user}
			for _, id := range ids {
				deleted, err := d.chats.DeleteChat(ctx, id, chat.DeleteOptions{UserID: user})
				if err != nil {
					return deletedInPart(err, r.Threads)
				}
				if deleted {
					r.Threads++
				}
			}
			return printDeletedUser(d.App, r)
		},
	}, nil
}

func noSuchUser(user string) error {
	return fmt.Errorf("threads and values of user %q: %w", user, lineage.ErrNotFound)
}

func deleteUserText(user string, threads, values int) string {
	return fmt.Sprintf("delete everything of user %q: %s", user, userCounts(&records.Deleted{Threads: threads, Values: values}))
}

// userCounts describes how much a user has.
func userCounts(r *records.Deleted) string {
	text := []string{amount.Plural(r.Threads, "thread")}
	if r.Messages > 0 {
		text = append(text, amount.Plural(r.Messages, "message"))
	}
	if r.Values > 0 {
		text = append(text, amount.Plural(r.Values, "value"))
	}
	return strings.Join(text, ", ")
}

// deletedInPart adds a hint to an error that some threads are deleted already.
func deletedInPart(err error, threads int) error {
	return app.Hint(err, "%s deleted so far; the same command deletes the rest", amount.Plural(threads, "thread"))
}

func printDeletedUser(a *app.App, r *records.Deleted) error {
	return a.Print(r, "deleted user %s: %s\n", screen.Line(r.Name), userCounts(r))
}
