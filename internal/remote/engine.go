package remote

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/lineage-store/lineage/internal/judge"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// StoreID implements backend.Identified.
func (c *Client) StoreID() [16]byte { return c.store.ID }

// Damage implements backend.Impaired.
func (c *Client) Damage() error { return c.store.Damage }

// snapshot is a snapshot that the server keeps open.
type snapshot struct{ reader }

// Snapshot implements backend.Engine.
func (c *Client) Snapshot(ctx context.Context) (backend.Snapshot, error) {
	id, err := callSnapshot.ask(ctx, &c.reader, struct{}{})
	if err != nil {
		return nil, err
	}
	return &snapshot{reader{client: c, snapshot: id, closed: new(atomic.Bool)}}, nil
}

// Close implements backend.Snapshot.
func (s *snapshot) Close() error {
	if !s.closed.Swap(true) {
		s.client.cancel(s.snapshot)
	}
	return nil
}

// Feed implements backend.Engine.
func (c *Client) Feed(ctx context.Context, after backend.Cursor) iter.Seq2[*structure.Commit, error] {
	head, err := c.Head(ctx)
	if err != nil {
		return func(yield func(*structure.Commit, error) bool) { yield(nil, err) }
	}
	return callFeed.all(ctx, &c.reader, feedArgs{after, head.Number})
}

// Wait implements backend.Engine.
func (c *Client) Wait(ctx context.Context, after backend.Cursor) (backend.Cursor, error) {
	return callWait.ask(ctx, &c.reader, after)
}

// Outcome implements backend.Engine.
func (c *Client) Outcome(ctx context.Context, o backend.Once) (backend.Receipt, error) {
	return callOutcome.ask(ctx, &c.reader, o)
}

// Forget implements backend.Engine.
func (c *Client) Forget(ctx context.Context, session [16]byte) error {
	_, err := callForget.ask(ctx, &c.reader, session)
	return err
}

// Upload implements backend.Engine.
func (c *Client) Upload(ctx context.Context, chunks []*structure.Chunk) (int, error) {
	if len(chunks) > 0 {
		all := make([]structure.Record, len(chunks))
		for i, chunk := range chunks {
			all[i] = chunk
		}
		var p judge.Preparation
		if err := p.Begin(&structure.Commit{Records: all}); err != nil {
			return 0, err
		}
	}
	return callUpload.ask(ctx, &c.reader, chunks)
}

// Sync implements backend.Engine.
func (c *Client) Sync(ctx context.Context) error {
	_, err := callSync.ask(ctx, &c.reader, struct{}{})
	return err
}

// Verify implements backend.Engine.
func (c *Client) Verify(ctx context.Context, o backend.VerifyOptions) iter.Seq2[backend.Finding, error] {
	return callVerify.report(ctx, &c.reader, o.Deep, o.Progress)
}

// Pack implements backend.Packer.
func (c *Client) Pack(ctx context.Context, o backend.PackOptions) (backend.PackReport, error) {
	return callPack.report(ctx, &c.reader, o, o.Progress)
}

// Collect implements backend.Collector.
func (c *Client) Collect(ctx context.Context, o backend.CollectOptions) (backend.CollectReport, error) {
	return callCollect.report(ctx, &c.reader, o, o.Progress)
}

// Copy implements backend.CopySource.
func (c *Client) Copy(ctx context.Context) iter.Seq2[backend.CopyPart, error] {
	return callCopy.all(ctx, &c.reader, struct{}{})
}

// Guests returns the processes that the server serves, this one included.
func (c *Client) Guests(ctx context.Context) ([]Process, error) {
	return callGuests.ask(ctx, &c.reader, struct{}{})
}
