package project

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/sqladapter/internal/projected"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

// grow writes what a scope has gained, and its contexts, branches and checkpoints. What the scope has lost was
// deleted before.
func (w *applier) grow(ctx context.Context, s *scope) error {
	v, err := w.open(ctx, s)
	if err == nil {
		err = v.load(ctx)
	}
	if err != nil {
		return err
	}
	if err := v.writeChat(ctx); err != nil {
		return err
	}
	if err := v.writeRuns(ctx); err != nil {
		return err
	}
	if err := v.writeContexts(ctx); err != nil {
		return err
	}
	if v.record != nil {
		if err := v.writeNames(ctx); err != nil {
			return err
		}
	}
	return w.flushFull(ctx)
}

// writeChat writes the row of the chat.
func (v *visibility) writeChat(ctx context.Context) error {
	v.put(tables.Scopes, nil, []any{v.key, v.chatID(), v.metadata()})
	if v.record == nil {
		return nil
	}
	c, err := v.reader.Chat(ctx)
	if err != nil {
		return err
	}
	c.UserID = projected.Clean(c.UserID)
	if c.UserID != "" && !v.w.ChatsOnly {
		v.w.batch.need(tables.Users, c.UserID)
	}
	v.put(tables.Chats, nil, []any{c.ID, c.UserID, chatrows.Optional(projected.Clean(c.Title)), chatrows.OptionalJSON(projected.CleanJSON(c.Metadata)), c.CreatedAt, c.UpdatedAt})
	if v.fresh {
		return v.w.addValues(ctx, structure.Owner{Scope: structure.ThreadScope, Thread: v.thread}, true)
	}
	return nil
}

// writeRuns writes missing spans. A run comes after the run that it starts from.
func (v *visibility) writeRuns(ctx context.Context) error {
	var grown []*visibleRun
	var runs []string
	for _, l := range v.visible {
		if l.last > l.has.last {
			grown = append(grown, l)
			runs = append(runs, l.run.ID.String())
		}
	}
	slices.SortFunc(grown, func(a, b *visibleRun) int {
		return cmp.Or(cmp.Compare(a.run.Depth, b.run.Depth), a.run.ID.Compare(b.run.ID))
	})
	if err := v.w.farthest(ctx, runs); err != nil {
		return err
	}
	for _, l := range grown {
		if err := v.writeRun(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// farthest reads the last projected span of runs, over all scopes.
func (w *applier) farthest(ctx context.Context, runs []string) error {
	if w.ChatsOnly || w.check != nil {
		return nil
	}
	if len(w.usages) > 50_000 {
		if err := w.flush(ctx); err != nil { // then the database has everything in w.usages
			return err
		}
		clear(w.usages)
	}
	var missing []string
	for _, run := range runs {
		if _, ok := w.usages[run]; !ok {
			missing = append(missing, run)
		}
	}
	ends, err := lists.Read(ctx, w.DB, func(c *sqladapter.Conn) (map[string]uint64, error) {
		return lists.CollectMap[uint64](ctx, c, reachSQL.farthest, missing)
	})
	maps.Copy(w.usages, ends)
	return err
}

// writeRun writes the missing spans of a run.
func (v *visibility) writeRun(ctx context.Context, l *visibleRun) error {
	from := l.has.last + 1
	parentSpan := l.run.Parent
	if from > 1 {
		parentSpan = structure.SpanRef{Run: l.run.ID, Seq: from - 1}
	}
	var own uint64
	var parent chat.Ref
	if v.reader != nil { // the scope is a chat
		var err error
		if own, err = v.owned(ctx, l.run.ID); err != nil {
			return err
		}
		if parent, err = v.reader.IDAt(ctx, parentSpan); err != nil {
			return err
		}
	}
	run := l.run.ID.String()
	e := &runEntry{key: v.key, run: run, own: own, existed: l.has.last > 0}
	tip := structure.SpanRef{Run: l.run.ID, Seq: l.last}
	for s, err := range v.w.state.Path(ctx, tip, structure.Window{From: l.run.Position(from)}, backend.PathOptions{Bodies: true}) {
		if err != nil {
			return err
		}
		if v.reader != nil {
			m, err := v.reader.Message(ctx, s, parent)
			if err != nil {
				return err
			}
			if err := v.addMessage(m); err != nil {
				return err
			}
			parent = chat.Ref(m.ID)
		}
		b := &v.w.batch
		for i := range s.Blocks {
			if projected.IsErased(s.Blocks[i]) {
				b.need(tables.Erased, s.Blocks[i].ID.String())
			}
		}
		if last, known := v.w.usages[run]; !v.w.ChatsOnly && (!known || last < s.Span.Ref.Seq) {
			if err := v.w.addSpan(ctx, s, parentSpan); err != nil {
				return err
			}
			v.w.usages[run] = s.Span.Ref.Seq
		}
		parentSpan = s.Span.Ref
		if b.n >= v.w.limit || b.bytes >= batchBytes {
			e.add(b, s.Span.Ref.Seq)
			if err := v.w.flush(ctx); err != nil {
				return err
			}
		}
	}
	e.add(&v.w.batch, l.last)
	return nil
}

// addMessage adds a message of a chat to the batch.
func (v *visibility) addMessage(m chat.Message) error {
	m.Name, m.Type, m.Data = projected.Clean(m.Name), projected.Clean(m.Type), projected.CleanJSON(m.Data)
	for _, s := range []*string{&m.Origin.UserID, &m.Origin.ModelID, &m.Origin.SourceID} {
		*s = projected.Clean(*s)
	}
	if err := chatrows.CheckMessage(v.w.DB, m); err != nil {
		return refuse(err)
	}
	b := &v.w.batch
	b.messages = append(b.messages, m)
	b.added++
	b.n += 4
	b.bytes += 2*len(m.Data) + 300
	return nil
}

// runEntry is the state of a run in a scope, as written in a batch.
type runEntry struct {
	key, run  string
	own, last uint64
	existed   bool
}

// add records the last projected span of the run in a batch.
func (e *runEntry) add(b *batch, last uint64) {
	if last == e.last {
		return
	}
	e.last = last
	if !e.existed {
		b.add(tables.Reach, e.key, e.run, last, int64(min(e.own, last)))
		e.existed = true
		return
	}
	b.after = append(b.after, exec(reachSQL.move, last, int64(min(e.own, last)), e.key, e.run))
	b.n++
}

// writeNames writes the branches and checkpoints of a chat.
func (v *visibility) writeNames(ctx context.Context) error {
	owner := []any{chat.IDOfThread(v.record)}
	var branches, checkpoints [][]any
	for record, err := range v.w.state.Branches(ctx, v.thread, "", "") {
		if err != nil {
			return err
		}
		b, err := v.reader.Branch(ctx, record)
		if err != nil {
			return err
		}
		b.Name = projected.Clean(b.Name)
		branches = append(branches, chatrows.BranchRow(&b))
	}
	for record, err := range v.w.state.Checkpoints(ctx, v.thread, "") {
		if err != nil {
			return err
		}
		k, err := v.reader.Checkpoint(ctx, record)
		if err == nil {
			k.ID, err = v.checkpointID(ctx, record)
		}
		if err != nil {
			return err
		}
		k.Name = projected.Clean(k.Name)
		checkpoints = append(checkpoints, chatrows.CheckpointRow(&k))
	}
	v.put(tables.Branches, owner, branches...)
	v.put(tables.Checkpoints, owner, checkpoints...)
	return nil
}

// growOrLeaveOut grows a scope, or leaves it out if the database cannot hold it.
func (w *applier) growOrLeaveOut(ctx context.Context, s *scope) error {
	v, err := w.open(ctx, s)
	if err == nil {
		err = v.check(ctx)
	}
	if w.isRefusal(err) {
		return w.leaveOut(ctx, s, err)
	}
	if err == nil {
		err = w.leaveNamesakeOut(ctx, v.record)
	}
	if err != nil {
		return err
	}
	held, err := w.holding(ctx, s, func() error { return w.grow(ctx, s) })
	if err != nil || !held {
		return err
	}
	w.report.Threads++
	return w.admit(ctx, s)
}
