package resume

import (
	"context"

	"github.com/lineage-store/lineage/internal/rawjson"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
)

// about is what a thread states about its session.
type about struct {
	thread                              lineage.ThreadID
	session, title, agent, dir, machine string
}

func aboutThread(ctx context.Context, store *lineage.Store, id lineage.ThreadID) (a about, err error) {
	if id.IsZero() {
		return a, nil
	}
	thread, err := store.Thread(ctx, id)
	if err != nil {
		return a, err
	}
	info, err := thread.Info(ctx)
	if err != nil {
		return a, err
	}
	a.thread, a.session, a.title = id, info.SourceID, info.Title
	if rawjson.Valid(info.Metadata) {
		text := func(key string) string { return rawjson.Str(rawjson.Get(info.Metadata, key)) }
		a.agent, a.dir, a.machine = text(archive.KeyAgent), text(archive.KeyProject), text(archive.KeyMachine)
	}
	return a, nil
}
