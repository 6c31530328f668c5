package derived_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
)

// titles is a list of the titles of threads, in memory.
type titles struct {
	mu   sync.Mutex
	mark derived.Mark
	of   map[lineage.ThreadID]string
}

func (l *titles) Mark(context.Context) (derived.Mark, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mark, nil
}

// Write runs one transaction after the other. What fails here changes nothing.
func (l *titles) Write(_ context.Context, do func(*titles) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return do(l)
}

func (l *titles) Swap(_ context.Context, _ *titles, was, now derived.Mark) (bool, error) {
	if l.mark != was {
		return false, nil
	}
	l.mark = now
	return true, nil
}

func (l *titles) Apply(ctx context.Context, w *derived.Window[*titles]) error {
	now := make(map[lineage.ThreadID]string)
	var gone []lineage.ThreadID
	for id := range w.Changes.Threads {
		t, err := w.State.Thread(ctx, id)
		switch {
		case errors.Is(err, lineage.ErrNotFound):
			gone = append(gone, id)
		case err != nil:
			return err
		default:
			now[id] = t.Title
		}
	}
	return w.Finish(ctx, func(l *titles) error {
		for _, id := range gone {
			delete(l.of, id)
		}
		for id, title := range now {
			l.of[id] = title
		}
		return nil
	})
}

func Example() {
	ctx := context.Background()
	store, err := lineage.OpenMemory(ctx, lineage.Options{})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	list := &titles{of: make(map[lineage.ThreadID]string)}
	follower := derived.Follower[*titles]{Store: store, Target: list}
	for _, title := range []string{"one", "two"} {
		thread, err := store.CreateThread(ctx, lineage.ThreadOptions{Title: title})
		if err != nil {
			panic(err)
		}
		if _, err := follower.Run(ctx); err != nil {
			panic(err)
		}
		fmt.Println(len(list.of), list.of[thread.ID()])
	}
	// Output:
	// 1 one
	// 2 two
}
