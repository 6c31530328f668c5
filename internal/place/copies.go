package place

import (
	"context"
	"errors"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// maxCopies limits the messages with an id that are looked at.
const maxCopies = 64

// FindCopy returns a thread of a user that has a message with an id, nil if there is none: what a session that was
// resumed or copied elsewhere was copied from. Only threads that like accepts are considered. It is the only lookup
// across threads, and never returns a thread of another user.
func FindCopy(ctx context.Context, from backend.Reader, user, id string, like func(*structure.Thread) bool) (*structure.Thread, error) {
	seen := 0
	for found, err := range from.Find(ctx, id, structure.ThreadID{}, backend.Found{}) {
		if err != nil {
			return nil, err
		}
		t, err := from.Thread(ctx, found.Home.Thread)
		switch {
		case errors.Is(err, backend.ErrNotFound):
		case err != nil:
			return nil, err
		case t.UserID == user && t.Home() == found.Home && like(t):
			return t, nil
		}
		if seen++; seen == maxCopies {
			break
		}
	}
	return nil, nil
}
