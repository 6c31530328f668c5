package importer

import (
	"context"
	"fmt"
)

// flush commits the current commit and begins the next one.
func (l *loader) flush() error {
	f := l.next
	if f.empty() {
		f.forget()
		f.release()
		return context.Cause(l.ctx)
	}
	if l.open != nil && l.open.thread != nil && !l.open.leftOut {
		f.held = l.open
		if err := l.protect(l.open.thread); err != nil {
			return err
		}
	}
	receipt, err := l.writer.Do(l.ctx, f.Batch, f)
	if err != nil {
		return &StoreError{fmt.Errorf("store: %w", err)}
	}
	if f.held != nil {
		f.held.thread.commit(f.placers[f.held.thread])
	}
	f.forget()
	l.applied = true
	for _, id := range receipt.Known {
		delete(f.contents, id)
	}
	for _, size := range f.contents {
		f.added.bytes += size
	}
	l.total.add(f.added)
	l.writer.Release(f.Batch)
	l.next = l.newDraft()
	return nil
}

// sync makes all commits of the import durable.
func (l *loader) sync() error {
	if !l.applied || l.options.Unsynced {
		return nil
	}
	return l.engine.Sync(l.ctx)
}
