package threads

import (
	"context"
	"iter"

	"github.com/lineage-store/lineage/cmd/lineage/internal/app"
	"github.com/lineage-store/lineage/cmd/lineage/internal/show"
	"github.com/lineage-store/lineage/internal/refs"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/follow"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/structure"
)

// ThreadRecord returns the record of a thread of a store.
func ThreadRecord(ctx context.Context, s *app.OpenStore, t *lineage.Thread) (*records.Thread, error) {
	r, err := records.OfThread(ctx, s.Store, t)
	if err == nil {
		InStore{s}.mark(r)
	}
	return r, err
}

// mark says whether a thread is the current one.
func (s InStore) mark(r *records.Thread) {
	r.Current = s.Thread != nil && s.Thread.ID().String() == r.ID
}

// CreateThread implements Keeper.
func (s InStore) CreateThread(ctx context.Context, o *ThreadCreateOptions) (*records.Thread, error) {
	t, err := s.Store.CreateThread(ctx, lineage.ThreadOptions{
		SourceID: o.ID, UserID: o.User, Title: o.Title, Metadata: o.Metadata, Overrides: o.Overrides.Build(),
	})
	if err != nil {
		return nil, err
	}
	if err := s.UseThread(t.ID()); err != nil {
		return nil, err
	}
	s.Thread, s.Refs = t, refs.New(s.Store, t)
	return ThreadRecord(ctx, s.OpenStore, t)
}

// ThreadToDelete implements Keeper.
func (s InStore) ThreadToDelete(ctx context.Context, name string) (*app.Destruction, error) {
	t, err := s.Refs.Thread(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := ThreadRecord(ctx, s.OpenStore, t)
	if err != nil {
		return nil, err
	}
	reach, err := reachOf(ctx, s.OpenStore, t)
	if err != nil {
		return nil, err
	}
	title, err := s.TitleOf(ctx, r)
	if err != nil {
		return nil, err
	}
	return &app.Destruction{
		What: deleteChatText(title, refs.Short(t.ID()), int64(reach.Spans()), int64(r.Branches)),
		Do: func(ctx context.Context) error {
			if err := t.Delete(ctx); err != nil {
				return err
			}
			err := s.Deleted(&records.Deleted{What: "thread", ID: r.ID, Name: title})
			if err != nil || !r.Current {
				return err
			}
			return noteCurrent(ctx, s.OpenStore)
		},
	}, nil
}

// noteCurrent prints the new current thread after the current one was deleted.
func noteCurrent(ctx context.Context, s *app.OpenStore) error {
	t, err := s.LatestThread(ctx)
	if err != nil || t == nil {
		return err
	}
	info, err := t.Info(ctx)
	if err != nil {
		return err
	}
	title, err := show.ShownTitle(ctx, s, info)
	if err != nil {
		return err
	}
	s.Note("now on thread %q (%s)", title, refs.Short(t.ID()))
	return nil
}

// ListThreads implements Keeper.
func (s InStore) ListThreads(ctx context.Context, o *ThreadListOptions, each func(*records.Thread) error) error {
	q, err := o.query()
	if err != nil {
		return err
	}
	all := s.Store.Threads(ctx, q)
	if o.Gone {
		if all, err = onlyGone(ctx, s.OpenStore, all); err != nil {
			return err
		}
	}
	usages, err := openUsages(ctx, s.OpenStore)
	if err != nil {
		return err
	}
	defer usages.close()
	return list(all, o.Limit, func(t *lineage.ListedThread) string { return t.Page.String() }, func(page []*lineage.ListedThread) ([]*records.Thread, error) {
		list, err := s.recordsOf(ctx, page)
		if err != nil {
			return nil, err
		}
		return list, usages.add(ctx, list...)
	}, each)
}

// recordsOf returns the records of listed threads, but for those that were deleted meanwhile.
func (s InStore) recordsOf(ctx context.Context, page []*lineage.ListedThread) ([]*records.Thread, error) {
	ids := make([]lineage.ThreadID, len(page))
	for i, t := range page {
		ids[i] = t.ID()
	}
	list, err := records.OfThreads(ctx, s.Store, ids)
	if err != nil {
		return nil, err
	}
	infos := make([]lineage.ThreadInfo, len(list))
	for i, r := range list {
		s.mark(r)
		if infos[i], err = InfoOf(r); err != nil {
			return nil, err
		}
	}
	titles, err := show.ShownTitles(ctx, s.OpenStore, infos)
	if err != nil {
		return nil, err
	}
	for i, r := range list {
		r.ShownTitle = titles[i]
	}
	return list, nil
}

// onlyGone yields the threads whose session files only the store still has.
func onlyGone(ctx context.Context, s *app.OpenStore, all iter.Seq2[*lineage.ListedThread, error]) (iter.Seq2[*lineage.ListedThread, error], error) {
	_, machine, err := s.Machine()
	if err != nil {
		return nil, err
	}
	gone, err := follow.OnlyKept(ctx, s.Store, machine)
	return func(yield func(*lineage.ListedThread, error) bool) {
		for t, err := range all {
			if err == nil {
				if _, ok := gone[t.Was.SourceID]; !ok {
					continue
				}
			}
			if !yield(t, err) {
				return
			}
		}
	}, err
}

// TitleOf returns the title under which a thread is shown.
func (s InStore) TitleOf(ctx context.Context, r *records.Thread) (string, error) {
	info, err := InfoOf(r)
	if err != nil {
		return "", err
	}
	return show.ShownTitle(ctx, s.OpenStore, info)
}

// InfoOf returns what the title of a thread is made from.
func InfoOf(r *records.Thread) (info lineage.ThreadInfo, err error) {
	info = lineage.ThreadInfo{SourceID: r.SourceID, Title: r.Title}
	if info.ID, err = structure.ParseID[lineage.ThreadID](r.ID); err == nil && r.Context != "" {
		info.Active, err = structure.ParseID[lineage.ContextID](r.Context)
	}
	return info, err
}

// SetThread implements Keeper.
func (s InStore) SetThread(ctx context.Context, o *ThreadSetOptions) (*records.Thread, error) {
	t, err := ThreadNamed(ctx, s.OpenStore, o.Thread)
	if err != nil {
		return nil, err
	}
	err = t.Update(ctx, func(info *lineage.ThreadInfo) error {
		if o.Given("title") {
			info.Title = o.Title
		}
		if o.Given("user") {
			info.UserID = o.User
		}
		if o.Given("metadata") {
			info.Metadata = o.Metadata
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ThreadRecord(ctx, s.OpenStore, t)
}

// ThreadNamed returns the thread with a name, or the current one for an empty name.
func ThreadNamed(ctx context.Context, s *app.OpenStore, name string) (*lineage.Thread, error) {
	if name == "" {
		return s.NeedThread()
	}
	return s.Refs.Thread(ctx, name)
}

// FindThread implements Keeper.
func (s InStore) FindThread(ctx context.Context, name string) (*records.Thread, error) {
	t, err := ThreadNamed(ctx, s.OpenStore, name)
	if err != nil {
		return nil, err
	}
	r, err := ThreadRecord(ctx, s.OpenStore, t)
	if err != nil {
		return nil, err
	}
	usages, err := openUsages(ctx, s.OpenStore)
	if err != nil {
		return nil, err
	}
	defer usages.close()
	return r, usages.add(ctx, r)
}

// reachOf returns the spans of a thread: the histories of its contexts and checkpoints, and the messages that it
// keeps.
func reachOf(ctx context.Context, s *app.OpenStore, t *lineage.Thread) (backend.Reach, error) {
	state, err := s.Store.View().Thread(ctx, t.ID())
	if err != nil {
		return nil, err
	}
	return backend.ReachOf(ctx, s.Store.View(), state)
}
