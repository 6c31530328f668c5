// Package eino keeps the checkpoints of graphs and agents that are built with Eino (github.com/cloudwego/eino) in a store.
//
// A checkpoint id is a thread with the source id PREFIX/ID, the id escaped as in a URL. What Eino saves under the id is a file of the
// history of its branch main, one after the other, so that earlier ones can be returned to. Checkpoints
// of 64 KiB and more are stored in pieces, each of them once; smaller ones are compressed together when the store is packed.
// The bytes are those of Eino's serializer.
package eino

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"unicode/utf8"

	"github.com/cloudwego/eino/compose"

	"github.com/lineage-store/lineage/lineage"
)

const (
	defaultPrefix = "eino/"
	mediaType     = "application/octet-stream"
	filename      = "checkpoint"
)

// Options configure a store of checkpoints.
type Options struct {
	// Prefix begins the source ids of threads. Default "eino/".
	Prefix string
	// UserID is the user that the threads belong to. A checkpoint of another user is ErrOtherUser.
	UserID string
}

// CheckPointStore keeps checkpoints. It is safe for concurrent use, also by several processes.
type CheckPointStore struct {
	store *lineage.Store
	o     Options
}

var _ compose.CheckPointStore = (*CheckPointStore)(nil)

// New returns a store of checkpoints in a store, for compose.WithCheckPointStore or adk.RunnerConfig.
func New(store *lineage.Store, o *Options) *CheckPointStore {
	s := &CheckPointStore{store: store}
	if o != nil {
		s.o = *o
	}
	if s.o.Prefix == "" {
		s.o.Prefix = defaultPrefix
	}
	return s
}

// sourceID returns the source id of the thread of a checkpoint.
func (s *CheckPointStore) sourceID(id string) (string, error) {
	if id == "" || !utf8.ValidString(id) {
		return "", fmt.Errorf("checkpoint %q: %w: an id is a text", id, lineage.ErrInvalid)
	}
	return s.o.Prefix + url.PathEscape(id), nil
}

// main returns the branch of a checkpoint; ErrNotFound if there is none.
func (s *CheckPointStore) main(ctx context.Context, id string) (*lineage.Thread, *lineage.Context, error) {
	source, err := s.sourceID(id)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.store.FindThread(ctx, source)
	if err != nil {
		return nil, nil, err
	}
	info, err := t.Info(ctx)
	if err == nil && s.o.UserID != "" && info.UserID != s.o.UserID {
		err = fmt.Errorf("checkpoint %q: %w", id, lineage.ErrOtherUser)
	}
	if err != nil {
		return nil, nil, err
	}
	main, err := t.Branch(ctx, lineage.MainBranch)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.store.Context(ctx, main.Context)
	return t, c, err
}

// Get implements compose.CheckPointStore.
func (s *CheckPointStore) Get(ctx context.Context, id string) ([]byte, bool, error) {
	_, c, err := s.main(ctx, id)
	if errors.Is(err, lineage.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	last, err := c.Last(ctx, 1)
	if err != nil || len(last) == 0 {
		return nil, false, err
	}
	r, err := s.store.Body(ctx, last[len(last)-1].Content)
	if err != nil {
		return nil, false, err
	}
	b, err := io.ReadAll(r)
	return b, err == nil, err
}

// Set implements compose.CheckPointStore. The last checkpoint of an id counts.
func (s *CheckPointStore) Set(ctx context.Context, id string, checkPoint []byte) error {
	source, err := s.sourceID(id)
	if err != nil {
		return err
	}
	_, err = s.store.OpenThread(ctx, lineage.ThreadOptions{SourceID: source, UserID: s.o.UserID, Metadata: []byte(`{"framework":"eino"}`)})
	if err != nil {
		return err
	}
	_, c, err := s.main(ctx, id)
	if err != nil {
		return err
	}
	_, err = c.Extend(ctx, lineage.Item{Kind: lineage.Asset, Filename: filename, Type: mediaType, Body: checkPoint})
	return err
}

// Fork creates the checkpoint to. It continues the checkpoint from after its last state, or so many states before it, and copies nothing.
// An id that is taken is ErrExists.
func (s *CheckPointStore) Fork(ctx context.Context, from, to string, before uint64) error {
	source, err := s.sourceID(to)
	if err != nil {
		return err
	}
	_, c, err := s.main(ctx, from)
	if err != nil {
		return err
	}
	tip, err := c.Tip(ctx)
	if err != nil {
		return err
	}
	length, err := s.store.Position(ctx, tip)
	if err == nil && before >= length {
		err = fmt.Errorf("checkpoint %q: %w: it has %d, and not one %d before the last", from, lineage.ErrNotFound, length, before)
	}
	if err != nil {
		return err
	}
	at, err := s.store.At(ctx, tip, length-before)
	if err != nil {
		return err
	}
	return s.store.Update(ctx, func(ctx context.Context, tx *lineage.Tx) error {
		t, err := tx.CreateThread(ctx, lineage.ThreadOptions{SourceID: source, UserID: s.o.UserID, Metadata: []byte(`{"framework":"eino"}`)})
		if err != nil {
			return err
		}
		c, err := t.Active(ctx)
		if err != nil {
			return err
		}
		return c.MoveTo(ctx, at, "fork")
	})
}

// Delete deletes a checkpoint and all earlier ones under its id. Forks keep theirs. It returns nil if there is no such checkpoint.
func (s *CheckPointStore) Delete(ctx context.Context, id string) error {
	t, _, err := s.main(ctx, id)
	if err == nil {
		err = t.Delete(ctx)
	}
	if errors.Is(err, lineage.ErrNotFound) {
		return nil
	}
	return err
}
