package lineage

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
)

// UserDeletion counts what DeleteUser deleted.
type UserDeletion struct {
	Threads int
	// Messages counts the steps that belonged to the threads, on any history. A step is one message, or several that were
	// added with Together.
	Messages uint64
	Values   int
}

// deletedTogether is the number of threads or values that DeleteUser deletes per commit.
const deletedTogether = 256

// DeleteUser deletes everything of a user: the threads with their branches, contexts and checkpoints, and the values
// of the user. Threads that others have forked from them keep the messages that they share. Messages in threads of
// other users remain there. The next Collect frees the rest.
//
// It takes several commits. After an error the counts are those of what was deleted, and another call deletes the
// rest.
func (s *Store) DeleteUser(ctx context.Context, userID string) (UserDeletion, error) {
	var done UserDeletion
	if userID == "" {
		return done, fmt.Errorf("delete a user without an id: %w", ErrInvalid)
	}
	for {
		var threads []ThreadID
		for l, err := range s.Threads(ctx, ThreadQuery{User: &userID}) {
			if err != nil {
				return done, err
			}
			if threads = append(threads, l.ID()); len(threads) == deletedTogether {
				break
			}
		}
		if len(threads) == 0 {
			var err error
			done.Values, err = s.deleteValues(ctx, Owner{Scope: UserScope, Name: userID})
			return done, err
		}
		deleted, messages, err := s.deleteThreads(ctx, threads)
		if err != nil {
			return done, err
		}
		done.Threads += deleted
		done.Messages += messages
	}
}

// deleteThreads deletes the threads that still exist. It returns how many they were and the number of
// messages that belonged to them.
func (s *Store) deleteThreads(ctx context.Context, threads []ThreadID) (deleted int, messages uint64, err error) {
	err = s.change(ctx, func(b *write.Batch, _ write.Try) error {
		deleted, messages = 0, 0
		for _, id := range threads {
			was, err := s.engine.Thread(ctx, id)
			if isNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			reach, err := backend.OwnReach(ctx, s.engine, id)
			if err != nil {
				return err
			}
			b.ExpectThread(id, was)
			b.DeleteThread(id)
			deleted++
			messages += reach.Spans()
		}
		return nil
	})
	return deleted, messages, err
}

// deleteValues deletes all values of an owner, and returns their number.
func (s *Store) deleteValues(ctx context.Context, owner Owner) (deleted int, err error) {
	values, next := s.Values(owner), ""
	for {
		var now int
		next, now, err = values.DeleteRange(ctx, next, "", deletedTogether)
		deleted += now
		if err != nil || next == "" {
			return deleted, err
		}
	}
}
