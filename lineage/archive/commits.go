package archive

import (
	"context"
	"fmt"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Limits of a commit. A read of one message verifies the frame of its whole commit, so commits
// should not be large; each has a fixed cost, so they should not be small.
const (
	commitBytes   = 64 << 10
	commitRecords = 512
	recordBytes   = 64 // what a record takes besides its bodies and metadata
)

// pending is a commit being filled.
type pending struct {
	*write.Batch
	added  added
	blocks map[content.ID]int64 // the sizes of the blocks in the batch
}

// added counts what a commit adds to a store, and the messages it shares.
type added struct {
	conversations, messages, shared int64
	bytes                           int64 // of new content
}

func (a *added) add(more added) {
	a.conversations += more.conversations
	a.messages += more.messages
	a.shared += more.shared
	a.bytes += more.bytes
}

// newPending returns an empty commit. It need not be durable by itself: the import is synced at its
// end.
func newPending(w *write.Writer) *pending {
	p := &pending{Batch: w.Batch(), blocks: make(map[content.ID]int64)}
	p.Durability = backend.Normal
	return p
}

// addBlock adds a block, created at the time of the commit.
func (p *pending) addBlock(b *structure.Block) {
	b.CreatedAt = p.Time()
	p.blocks[b.ID] = b.Size
	p.Adopt(b)
}

func (p *pending) empty() bool {
	records, _ := p.Size()
	return records == 0
}

func (p *pending) full() bool {
	records, bytes := p.Size()
	return bytes+recordBytes*records >= commitBytes || records >= commitRecords
}

// committer applies commits in order, in the background. It stops at the first that fails, because
// later ones depend on it.
type committer struct {
	ctx    context.Context
	writer *write.Writer
	queue  chan work
	done   chan struct{}
	failed chan struct{}
	// err and added belong to the goroutine until a barrier is reached. added counts only commits
	// that are in the store.
	err     error
	added   added
	applied bool // a commit was applied
}

// work is a commit, or a barrier that is closed when all commits before it are applied.
type work struct {
	commit  *pending
	barrier chan struct{}
}

func newCommitter(ctx context.Context, writer *write.Writer) *committer {
	c := &committer{ctx: ctx, writer: writer, queue: make(chan work, 4), done: make(chan struct{}), failed: make(chan struct{})}
	go c.run()
	return c
}

func (c *committer) run() {
	defer close(c.done)
	for w := range c.queue {
		if w.barrier != nil {
			close(w.barrier)
			continue
		}
		if c.err != nil {
			continue
		}
		if c.err = c.apply(w.commit); c.err != nil {
			close(c.failed)
		}
	}
}

func (c *committer) apply(p *pending) error {
	defer c.writer.Release(p.Batch)
	receipt, err := c.writer.Commit(c.ctx, p.Batch)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	c.applied = true
	c.added.add(p.added)
	for _, id := range receipt.Known {
		delete(p.blocks, id)
	}
	for _, size := range p.blocks {
		c.added.bytes += size
	}
	return nil
}

// send hands over a commit; the caller must not use it afterwards.
func (c *committer) send(p *pending) error {
	select {
	case <-c.failed:
		return c.err
	case c.queue <- work{commit: p}:
		return nil
	}
}

// sync waits like wait and makes the store durable.
func (c *committer) sync() error {
	if err := c.wait(); err != nil || !c.applied {
		return err
	}
	return c.writer.Engine().Sync(c.ctx)
}

// wait waits until all commits sent are in the store.
func (c *committer) wait() error {
	reached := make(chan struct{})
	c.queue <- work{barrier: reached}
	<-reached
	return c.err
}

// close waits like wait and ends the goroutine.
func (c *committer) close() error {
	close(c.queue)
	<-c.done
	return c.err
}
