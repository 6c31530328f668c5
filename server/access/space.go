package access

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/lineage-store/lineage/lineage"
)

// Space returns the prefix of the source ids that callers of the scope choose in a thread. Each user, or with projects alone each
// project, has a space of ids of its own. So an id that is taken elsewhere is free here, and no caller learns which ids others
// have, though ids are derived from source ids. The prefix is empty for the whole store.
func (s *Scope) Space(t *lineage.ThreadInfo) string {
	switch {
	case s.All():
		return ""
	case len(s.Users) > 0:
		return spaceOf("user", t.UserID)
	}
	return spaceOf("project", projectOf(t))
}

// Names returns the source ids that a name of a caller can stand for, the likeliest first: that in each space of the scope, and
// the name itself. The last one may belong to a thread outside the scope.
func (s *Scope) Names(name string) (all []string) {
	kind, owners := "user", s.Users
	if len(owners) == 0 {
		kind, owners = "project", s.Projects
	}
	for _, owner := range owners {
		all = append(all, spaceOf(kind, owner)+name)
	}
	return append(all, name)
}

// Chosen returns a source id as a caller of the scope chose it.
func (s *Scope) Chosen(sourceID string) string {
	for _, space := range s.Names("") {
		if chosen, ok := strings.CutPrefix(sourceID, space); ok {
			return chosen
		}
	}
	return sourceID
}

// FindThread returns the thread in the scope whose id its caller or another one chose.
func (s *Scope) FindThread(ctx context.Context, store *lineage.Store, id string) (*lineage.Thread, error) {
	for _, name := range s.Names(id) {
		t, err := store.FindThread(ctx, name)
		if err == nil {
			err = s.Check(ctx, t)
		}
		if !errors.Is(err, lineage.ErrNotFound) {
			return t, err
		}
	}
	return nil, fmt.Errorf("thread %.100q: %w", id, lineage.ErrNotFound)
}

// spaceOf has a hash, so that no two names make one space, and names are as long as they like.
func spaceOf(kind, name string) string {
	h := sha256.Sum256([]byte(kind + "\x00" + name))
	return fmt.Sprintf("scope:%s/", hex.EncodeToString(h[:12]))
}
