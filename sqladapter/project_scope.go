package sqladapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter/internal/tables"
	"github.com/lineage-store/lineage/structure"
)

var scopeSQL = struct {
	reach, reachOf, moveReach, farthest Statement
}{
	reach:     `SELECT "run_id", "last_seq", "own" FROM "lineage_reach" WHERE "scope" = ?`,
	reachOf:   `SELECT "run_id", "last_seq", "own" FROM "lineage_reach" WHERE "scope" = ? AND "run_id" = ?`,
	moveReach: `UPDATE "lineage_reach" SET "last_seq" = ?, "own" = ? WHERE "scope" = ? AND "run_id" = ?`,
	farthest:  `SELECT "run_id", MAX("last_seq") AS "last" FROM "lineage_reach" WHERE "run_id" IN ({list}) GROUP BY "run_id"`,
}

// extent is the part of a run that the database has in a scope. own is how many of its messages,
// from the first on, have their own ids.
type extent struct {
	run       structure.RunID
	last, own uint64
}

func scanExtent(rows *Rows) (extent, error) {
	var run string
	var e extent
	if err := rows.Scan(&run, &e.last, &e.own); err != nil {
		return e, err
	}
	var err error
	if e.run, err = structure.ParseID[structure.RunID](run); err != nil {
		err = fmt.Errorf("table lineage_reach: %w: %w", ErrCorrupt, err)
	}
	return e, err
}

// line is the part of a run that a scope sees.
type line struct {
	run  structure.RunInfo
	last uint64
	// has is the part in the database.
	has extent
	// counted is set if own is known: how many messages, from the first on, have their own ids.
	counted bool
	own     uint64
}

// view is what a scope sees.
type view struct {
	w *projection
	*scope
	record *structure.Thread
	reader *chat.ThreadReader
	lines  map[structure.RunID]*line
	// written are the contexts to write.
	written []backend.Context
}

// open reads the thread of a scope.
func (w *projection) open(ctx context.Context, s *scope) (*view, error) {
	v := &view{w: w, scope: s, lines: make(map[structure.RunID]*line)}
	if s.thread.IsZero() {
		return v, nil
	}
	var err error
	if v.record, err = w.state.Thread(ctx, s.thread); err != nil {
		return nil, err
	}
	v.reader = chat.NewThreadReader(w.Store, w.state, v.record, v.owned)
	return v, nil
}

// chatID is null for a scope that is not a thread.
func (v *view) chatID() any {
	if v.record == nil {
		return nil
	}
	return chat.IDOfThread(v.record)
}

// metadata returns the thread's metadata. Some databases keep only its JSON value in chats.
func (v *view) metadata() any {
	if v.record == nil {
		return nil
	}
	return bytesText(v.record.Metadata)
}

// look determines what the scope sees: everything, or what changed contexts see in addition.
func (v *view) look(ctx context.Context) error {
	if v.full && !v.fresh {
		has, err := readAll(ctx, v.w.DB, scanExtent, scopeSQL.reach, v.key)
		if err != nil {
			return err
		}
		for _, e := range has {
			v.lines[e.run] = &line{has: e}
		}
	}
	for c, err := range v.contextsToLookAt(ctx) {
		if err != nil {
			return err
		}
		v.written = append(v.written, c)
		if v.full && v.record != nil {
			continue
		}
		if err := v.follow(ctx, c.Tip); err != nil {
			return err
		}
	}
	if v.full && v.record != nil {
		reach, err := backend.ReachOf(ctx, v.w.state, v.record)
		if err != nil {
			return err
		}
		for id, e := range reach {
			l := v.lines[id]
			if l == nil {
				l = &line{}
				v.lines[id] = l
			}
			l.run, l.last = e.Run, e.Last
		}
	} else {
		for _, run := range v.runs {
			last, err := v.w.state.Last(ctx, run)
			if err == nil {
				err = v.follow(ctx, last)
			}
			if err != nil {
				return err
			}
		}
	}
	slices.SortFunc(v.written, byAge)
	return nil
}

func (v *view) contextsToLookAt(ctx context.Context) func(yield func(backend.Context, error) bool) {
	if v.record != nil && v.full {
		return v.w.state.Contexts(ctx, v.thread, structure.ContextID{})
	}
	ids := v.scope.contexts
	if v.record == nil {
		ids = []structure.ContextID{v.context}
	}
	return func(yield func(backend.Context, error) bool) {
		for _, id := range ids {
			c, err := v.w.state.Context(ctx, id)
			if errors.Is(err, lineage.ErrNotFound) {
				continue
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// follow adds the history that ends at a span, up to the known part.
func (v *view) follow(ctx context.Context, at structure.SpanRef) error {
	runs := backend.Runs(ctx, v.w.state)
	for !at.IsZero() {
		l := v.lines[at.Run]
		if l != nil && l.run.ID == at.Run {
			l.last = max(l.last, at.Seq)
			return nil
		}
		run, err := runs(at.Run)
		if err != nil {
			return err
		}
		if l == nil {
			l = &line{}
			v.lines[at.Run] = l
			if !v.full {
				if err := v.recall(ctx, at.Run, l); err != nil {
					return err
				}
			}
		}
		l.run, l.last = run, at.Seq
		if !v.full && l.has.last > 0 {
			l.last = max(l.last, l.has.last)
			return nil // the rest is in the database
		}
		at = run.Parent
	}
	return nil
}

// recall reads the part of a run in the database.
func (v *view) recall(ctx context.Context, run structure.RunID, l *line) error {
	return v.w.DB.Read(ctx, func(c *Conn) error {
		rows, err := c.Query(ctx, scopeSQL.reachOf, v.key, run.String())
		has, err := first(rows, err, scanExtent)
		if has != nil {
			l.has = *has
		}
		return err
	})
}

// grow writes what a scope has gained, and its contexts, branches and checkpoints. What it has lost
// was deleted before.
func (w *projection) grow(ctx context.Context, s *scope) error {
	v, err := w.open(ctx, s)
	if err == nil {
		err = v.look(ctx)
	}
	if err != nil {
		return err
	}
	if err := v.writeChat(ctx); err != nil {
		return err
	}
	if err := v.writeLines(ctx); err != nil {
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
	return w.room(ctx)
}

// writeChat writes the row of the chat.
func (v *view) writeChat(ctx context.Context) error {
	v.put(tables.Scopes, nil, []any{v.key, v.chatID(), v.metadata()})
	if v.record == nil {
		return nil
	}
	c, err := v.reader.Chat(ctx)
	if err != nil {
		return err
	}
	db := v.w.DB
	if err := errors.Join(db.checkID(chat.SubjectChat, c.ID), db.checkUser(c.UserID)); err != nil {
		return err
	}
	if c.UserID != "" && !v.w.ChatsOnly {
		v.w.batch.need(tables.Users, c.UserID)
	}
	v.put(tables.Chats, nil, []any{c.ID, c.UserID, optional(clean(c.Title)), jsonText(cleanJSON(c.Metadata)), c.CreatedAt, c.UpdatedAt})
	if v.fresh {
		return v.w.addValues(ctx, structure.Owner{Scope: structure.ThreadScope, Thread: v.thread}, true)
	}
	return nil
}

// writeLines writes missing spans, each run after the one it starts from.
func (v *view) writeLines(ctx context.Context) error {
	var grown []*line
	var runs []string
	for _, l := range v.lines {
		if l.last > l.has.last {
			grown = append(grown, l)
			runs = append(runs, l.run.ID.String())
		}
	}
	slices.SortFunc(grown, func(a, b *line) int {
		return cmp.Or(cmp.Compare(a.run.Depth, b.run.Depth), a.run.ID.Compare(b.run.ID))
	})
	if err := v.w.farthest(ctx, runs); err != nil {
		return err
	}
	for _, l := range grown {
		if err := v.writeLine(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// farthest reads the last projected span of runs in any scope.
func (w *projection) farthest(ctx context.Context, runs []string) error {
	if w.ChatsOnly || w.check != nil {
		return nil
	}
	if len(w.usages) > 50_000 {
		if err := w.flush(ctx); err != nil { // so that the database knows
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
	ends, err := read(ctx, w.DB, func(c *Conn) (map[string]uint64, error) {
		return collectMap[uint64](ctx, c, scopeSQL.farthest, missing)
	})
	maps.Copy(w.usages, ends)
	return err
}

// writeLine writes the missing spans of a run.
func (v *view) writeLine(ctx context.Context, l *line) error {
	var own uint64
	if v.reader != nil {
		var err error
		if own, err = v.owned(ctx, l.run.ID); err != nil {
			return err
		}
	}
	from := l.has.last + 1
	parent, parentSpan := chat.Ref(""), l.run.Parent
	if from > 1 {
		parentSpan = structure.SpanRef{Run: l.run.ID, Seq: from - 1}
	}
	if v.reader != nil {
		var err error
		if parent, err = v.reader.IDAt(ctx, parentSpan); err != nil {
			return err
		}
	}
	run := l.run.ID.String()
	e := &entry{key: v.key, run: run, own: own, had: l.has.last > 0}
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
			if isErased(s.Blocks[i]) {
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
		if b.n >= v.w.limit || b.bytes >= most {
			e.add(b, s.Span.Ref.Seq)
			if err := v.w.flush(ctx); err != nil {
				return err
			}
		}
	}
	e.add(&v.w.batch, l.last)
	return nil
}

func (v *view) addMessage(m chat.Message) error {
	db := v.w.DB
	m.Name, m.Type, m.Data = clean(m.Name), clean(m.Type), cleanJSON(m.Data)
	for _, s := range []*string{&m.Origin.UserID, &m.Origin.ModelID, &m.Origin.SourceID} {
		*s = clean(*s)
	}
	if err := db.checkMessage(m); err != nil {
		return err
	}
	b := &v.w.batch
	b.messages = append(b.messages, m)
	b.added++
	b.n += 4
	b.bytes += 2*len(m.Data) + 300
	return nil
}
