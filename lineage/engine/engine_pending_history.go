package engine

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/google/uuid"

	"github.com/lineage-store/lineage/lineage/chat"
)

// pendingHistory is the history that pending messages will be part of.
type pendingHistory struct {
	// after is the saved message before them.
	after chat.Ref
	// fragments are the messages that are not in the history up to after.
	fragments []Fragment
	// versions are the ids of saved messages that have new versions in fragments.
	versions map[string]bool
}

// pendingHistory returns the history for messages that are pending on a branch. If they include new versions of saved messages,
// the history forks before the earliest of these. An unchanged message counts as a new version if the history does not have
// the saved one, because that is on another branch or after another new version.
func (e *Engine) pendingHistory(ctx context.Context, head chat.Ref, pending []Fragment) (pendingHistory, error) {
	saved, err := e.savedAmong(ctx, pending)
	if err != nil || len(saved) == 0 {
		return pendingHistory{after: head, fragments: pending}, err
	}
	h := pendingHistory{after: head, versions: make(map[string]bool)}
	var same []string
	for _, f := range pending {
		m, ok := saved[f.ID]
		if !ok {
			continue
		}
		unchanged, err := isUnchanged(f, m)
		if err != nil {
			return pendingHistory{}, err
		}
		if unchanged {
			same = append(same, f.ID)
		} else {
			h.versions[f.ID] = true
		}
	}
	for more := true; more; { // a new version may move the fork, and so make others
		if err := e.setFork(ctx, &h, pending, saved); err != nil {
			return pendingHistory{}, err
		}
		if more, err = e.addVersions(ctx, &h, same); err != nil {
			return pendingHistory{}, err
		}
	}
	for _, f := range pending {
		if _, ok := saved[f.ID]; !ok || h.versions[f.ID] {
			h.fragments = append(h.fragments, f)
		}
	}
	return h, nil
}

// setFork makes the history fork before the earliest of the new versions.
func (e *Engine) setFork(ctx context.Context, h *pendingHistory, pending []Fragment, saved map[string]chat.Message) error {
	position := 0
	for _, f := range pending {
		if !h.versions[f.ID] {
			continue
		}
		if len(h.versions) == 1 {
			h.after = saved[f.ID].ParentID
			return nil
		}
		n, err := e.store.CountMessages(ctx, e.chatID, f.ID)
		if err != nil {
			return err
		}
		if position == 0 || n < position {
			h.after, position = saved[f.ID].ParentID, n
		}
	}
	return nil
}

// addVersions adds those messages to the versions that the history does not have, and reports whether there are any.
func (e *Engine) addVersions(ctx context.Context, h *pendingHistory, same []string) (more bool, err error) {
	if len(same) == 0 {
		return false, nil
	}
	off := make(map[string]bool)
	for _, id := range same {
		if !h.versions[id] {
			off[id] = true
		}
	}
	if h.after != "" && len(off) > 0 {
		for m, err := range e.store.Ancestors(ctx, e.chatID, string(h.after)) {
			if err != nil {
				return false, err
			}
			if delete(off, m.ID); len(off) == 0 {
				break
			}
		}
	}
	maps.Copy(h.versions, off)
	return len(off) > 0, nil
}

// savedAmong returns the saved messages with the ids of pending ones.
func (e *Engine) savedAmong(ctx context.Context, pending []Fragment) (map[string]chat.Message, error) {
	saved := make(map[string]chat.Message)
	for _, f := range pending {
		m, err := e.own(ctx, f.ID)
		if err != nil {
			return nil, err
		}
		if m != nil {
			saved[f.ID] = *m
		}
	}
	return saved, nil
}

// own returns the message of the chat with an id, nil if there is none. It does not matter here whether another chat
// has the id: the store checks that when the message is added.
func (e *Engine) own(ctx context.Context, id string) (*chat.Message, error) {
	m, err := e.store.Message(ctx, e.chatID, id)
	if errors.Is(err, chat.ErrOtherChat) {
		return nil, nil
	}
	return m, err
}

// isUnchanged reports whether a pending message equals the saved one with its id, including the
// origin.
func isUnchanged(f Fragment, saved chat.Message) (bool, error) {
	m, err := stored(f, false)
	if err != nil {
		return false, err
	}
	m.ChatID, m.ParentID = saved.ChatID, saved.ParentID
	o, was := f.Origin, saved.Origin
	return m.Same(saved) && (o.UserID == "" || o.UserID == was.UserID) && (o.ModelID == "" || o.ModelID == was.ModelID) &&
		(o.SourceID == "" || o.SourceID == was.SourceID), nil
}

// stored returns the stored form of a message, with a new id if it is a new version.
func stored(f Fragment, version bool) (chat.Message, error) {
	data, err := f.Codec.Encode()
	if err != nil {
		return chat.Message{}, messageError(f.ID, err)
	}
	id, origin := f.ID, f.Origin
	if version {
		if origin.DerivedFrom == "" {
			origin.DerivedFrom = f.ID
		}
		id = uuid.NewString()
		if data, err = withID(data, id); err != nil {
			return chat.Message{}, messageError(f.ID, err)
		}
	}
	return chat.Message{ID: id, Name: f.Name, Type: string(f.Type), Data: data, Origin: origin}, nil
}

// withID changes the id in the stored form of a message. A custom form is left unchanged.
func withID(data json.RawMessage, id string) (json.RawMessage, error) {
	m, err := DecodeMessage(data)
	if err != nil {
		return data, nil
	}
	m.ID = id
	return m.Encode()
}
