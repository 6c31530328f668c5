package project

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/chat"
	"github.com/lineage-store/lineage/sqladapter"
	"github.com/lineage-store/lineage/sqladapter/internal/chatrows"
	"github.com/lineage-store/lineage/sqladapter/internal/lists"
	"github.com/lineage-store/lineage/structure"
)

// A message keeps its id from the store if the database can have it. Ids are unique in a database, but in a store
// only within a thread. From the first message of a run whose id is not possible, the messages of the run have the
// ids of their spans. The database records how many messages of a run come before that one, so that existing rows
// keep their ids. Earlier versions of messages have the ids of their spans in the store too and are not counted.

// owned returns how many messages of a run, from the first on, may have their own ids.
func (v *visibility) owned(ctx context.Context, run structure.RunID) (uint64, error) {
	l := v.visible[run]
	if l == nil {
		l = &visibleRun{}
		if err := v.recall(ctx, run, l); err != nil {
			return 0, err
		}
		v.visible[run] = l
	}
	if l.counted {
		return l.own, nil
	}
	var err error
	l.own, l.counted = l.has.own, true
	if l.last > l.has.last && l.own == l.has.last {
		l.own, err = v.count(ctx, run, l.own, l.last)
	}
	if v.w.check != nil { // existing rows keep their ids
		var first visibleRun
		if err := v.recall(ctx, run, &first); err != nil {
			return 0, err
		}
		if first.has.last > 0 {
			l.own = min(l.own, first.has.own)
		}
	}
	return l.own, err
}

// count returns the number of messages at the start of a run that can have their own ids in the database. The first
// known ones are known to.
func (v *visibility) count(ctx context.Context, run structure.RunID, known, last uint64) (uint64, error) {
	info, err := v.w.state.Run(ctx, run)
	if err != nil || info.Home != v.record.Home() {
		return 0, err
	}
	tip := structure.SpanRef{Run: run, Seq: last}
	for step, err := range v.w.state.Path(ctx, tip, structure.Window{From: info.Position(known + 1)}, backend.PathOptions{}) {
		if err != nil {
			return 0, err
		}
		id, free := v.reader.SourceID(step.Span), true
		if id != "" {
			free, err = v.isFree(ctx, id)
		}
		if err != nil || !free {
			return step.Span.Ref.Seq - 1, err
		}
	}
	return last, nil
}

// isFree reports whether a message of the chat can have an id in the database, because no other chat has it.
func (v *visibility) isFree(ctx context.Context, id string) (bool, error) {
	if chatrows.CheckID(v.w.DB, chat.SubjectMessage, id) != nil || (chat.Message{ID: id, Name: "-", Data: []byte("0")}).Check() != nil {
		return false, nil
	}
	others := false
	for found, err := range v.w.state.Find(ctx, id, structure.ThreadID{}, backend.Found{}) {
		if err != nil {
			return false, err
		}
		if others = found.Home.Thread != v.thread; others {
			break
		}
	}
	if !others {
		return true, nil
	}
	own := chat.IDOfThread(v.record)
	for _, m := range v.w.batch.messages {
		if m.ID == id && m.ChatID != own {
			return false, nil
		}
	}
	free := true
	err := v.w.DB.Read(ctx, func(c *sqladapter.Conn) error {
		chats, err := chatrows.ChatsOf(ctx, c, []string{id})
		in, there := chats[id]
		free = !there || in == own
		return err
	})
	return free, err
}

// checkpointID returns the id of a checkpoint in the database: the id that the caller chose, or the id of the record if
// another chat of the store has a checkpoint with the chosen id. A row that exists keeps its id.
func (v *visibility) checkpointID(ctx context.Context, k *structure.Checkpoint) (string, error) {
	own := k.ID.String()
	if k.SourceID == "" {
		return own, nil
	}
	if v.checkpoints == nil {
		rows, err := lists.Read(ctx, v.w.DB, func(c *sqladapter.Conn) ([]chat.Checkpoint, error) {
			return chatrows.Checkpoints(ctx, c, chat.IDOfThread(v.record))
		})
		if err != nil {
			return "", err
		}
		v.checkpoints = make(map[string]bool, len(rows))
		for i := range rows {
			v.checkpoints[rows[i].ID] = true
		}
	}
	for _, id := range []string{k.SourceID, own} {
		if v.checkpoints[id] {
			return id, nil
		}
	}
	for other, err := range v.w.state.CheckpointsBySource(ctx, k.SourceID, structure.ThreadID{}) {
		if err != nil {
			return "", err
		}
		if other.Thread != v.thread {
			return own, nil
		}
	}
	return k.SourceID, nil
}

// contextOwner returns a context as an owner of values.
func contextOwner(id structure.ContextID) structure.Owner {
	return structure.Owner{Scope: structure.ContextScope, Context: id}
}
