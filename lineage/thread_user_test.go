package lineage_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// TestThreadIsClaimedOnce sets the user of a thread without one, inside and outside a transaction.
// It then cannot be changed or removed.
func TestThreadIsClaimedOnce(t *testing.T) {
	s := newStore(t)
	for name, update := range map[string]func(lineage.ThreadID, func(*lineage.ThreadInfo) error) error{
		"thread": func(id lineage.ThreadID, change func(*lineage.ThreadInfo) error) error {
			thread, err := s.Thread(bg, id)
			require.NoError(t, err)
			return thread.Update(bg, change)
		},
		"transaction": func(id lineage.ThreadID, change func(*lineage.ThreadInfo) error) error {
			return s.Update(bg, func(ctx context.Context, tx *lineage.Tx) error {
				thread, err := tx.Thread(bg, id)
				if err != nil {
					return err
				}
				return thread.Update(bg, change)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			thread, _ := newThread(t, s)
			claim := func(user string) error {
				return update(thread.ID(), func(i *lineage.ThreadInfo) error { i.UserID, i.Title = user, user; return nil })
			}
			require.NoError(t, claim(""))
			require.NoError(t, claim("ada"))
			require.NoError(t, claim("ada"))
			for _, user := range []string{"bob", ""} {
				err := claim(user)
				require.ErrorIs(t, err, lineage.ErrOtherUser)
				var about *lineage.SubjectError
				require.ErrorAs(t, err, &about)
				require.Equal(t, "thread", about.Subject)
			}
			info, err := thread.Info(bg)
			require.NoError(t, err)
			require.Equal(t, "ada", info.UserID)
			require.Equal(t, "ada", info.Title)
		})
	}
}
