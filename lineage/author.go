package lineage

import (
	"context"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Author returns the origin of an entry and the context that it was added through, which is the one that the entry's
// commit extended to its span or beyond. The context is zero if unknown, as in imported histories.
//
// If the entry has no user, the origin's user is that of the entry's thread. If the answer of a model has no model,
// the origin's model is the one now in force in the context. If the context is unknown or deleted, it is the model
// that all contexts of the thread have in common. A program that changes the model of a context should therefore set
// it on each message (Item.From).
func (s *Store) Author(ctx context.Context, e *Entry) (Origin, ContextID, error) {
	authors := newAuthorship(ctx, s, s.engine)
	through, err := authors.context(e)
	if err != nil {
		return Origin{}, ContextID{}, err
	}
	origin, err := authors.origin(e)
	return origin, through, err
}

// authorship determines authors of entries and caches what it reads.
type authorship struct {
	ctx    context.Context
	engine backend.Engine
	from   backend.Reader
	// homes are the homes of runs, users the users of existing threads.
	homes map[structure.RunID]structure.Home
	users map[structure.Home]string
	// models maps contexts to the model in force. threads tells whether all contexts of a thread have the same model.
	models  map[ContextID]string
	threads map[structure.Home]agreement
	// tips are the tip records of commit.
	commit uint64
	tips   []structure.Tip
}

type agreement struct {
	model  string
	agreed bool
}

func newAuthorship(ctx context.Context, s *Store, from backend.Reader) *authorship {
	return &authorship{
		ctx: ctx, engine: s.engine, from: from,
		homes: make(map[structure.RunID]structure.Home), users: make(map[structure.Home]string),
		models: make(map[ContextID]string), threads: make(map[structure.Home]agreement),
	}
}

// origin returns the origin of an entry, with the user and model filled in.
func (a *authorship) origin(e *Entry) (Origin, error) {
	o := e.Origin
	answer := o.Kind == content.OriginAssistant && o.ModelID == ""
	if o.UserID != "" && !answer {
		return o, nil
	}
	home, err := a.home(e.Span.Run)
	if err == nil && o.UserID == "" {
		o.UserID, err = a.user(home)
	}
	if err != nil || !answer {
		return o, err
	}
	o.ModelID, err = a.model(e, home)
	return o, err
}

func (a *authorship) home(run structure.RunID) (structure.Home, error) {
	home, known := a.homes[run]
	if known {
		return home, nil
	}
	info, err := a.from.Run(a.ctx, run)
	a.homes[run] = info.Home
	return info.Home, err
}

// user returns the user of a thread, empty if the thread was deleted.
func (a *authorship) user(home structure.Home) (string, error) {
	user, known := a.users[home]
	if known || home.Thread.IsZero() {
		return user, nil
	}
	thread, err := a.from.Thread(a.ctx, home.Thread)
	if err != nil && !isNotFound(err) {
		return "", err
	}
	if err == nil && thread.Home() == home {
		user = thread.UserID
	}
	a.users[home] = user
	return user, nil
}

// model returns the model of an answer that has none: the one in force in the context that the answer was added
// through. If that is unknown, it is the model that all contexts of the thread have in common.
func (a *authorship) model(e *Entry, home structure.Home) (string, error) {
	if a.commit != e.Commit { // usually all contexts agree, which saves reading the commit
		if model, agreed, err := a.agreed(home); err != nil || agreed {
			return model, err
		}
	}
	through, err := a.context(e)
	if err != nil {
		return "", err
	}
	if model, there, err := a.inForce(through); err != nil || there {
		return model, err
	}
	model, _, err := a.agreed(home)
	return model, err
}

// agreed returns the model in force in all contexts of a thread, if it is the same.
func (a *authorship) agreed(home structure.Home) (model string, agreed bool, err error) {
	if home.Thread.IsZero() {
		return "", false, nil
	}
	if decided, known := a.threads[home]; known {
		return decided.model, decided.agreed, nil
	}
	first := true
	for c, err := range a.from.Contexts(a.ctx, home.Thread, ContextID{}) {
		if err != nil {
			return "", false, err
		}
		inForce, _, err := a.inForce(c.ID)
		if err != nil {
			return "", false, err
		}
		if agreed = first || inForce == model; !agreed {
			model = ""
			break
		}
		model, first = inForce, false
	}
	a.threads[home] = agreement{model, agreed}
	return model, agreed, nil
}

// inForce returns the model in force in a context, empty if none is set, and whether the context
// exists.
func (a *authorship) inForce(id ContextID) (model string, there bool, err error) {
	if known, ok := a.models[id]; ok {
		return known, true, nil
	}
	var below []ContextID // contexts that inherit the model
	for c, err := range backend.Ancestors(a.ctx, a.from, id) {
		if isNotFound(err) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		if known, ok := a.models[c.ID]; ok {
			model = known
			break
		}
		if !c.Deleted {
			below = append(below, c.ID)
		}
		if c.Overrides.Model != nil {
			model = *c.Overrides.Model
			break
		}
	}
	for _, at := range below {
		a.models[at] = model
	}
	_, there = a.models[id]
	return model, there, nil
}

// context returns the context that an entry was added through, zero if unknown.
func (a *authorship) context(e *Entry) (ContextID, error) {
	if a.commit != e.Commit {
		if err := a.readTips(e.Commit); err != nil {
			return ContextID{}, err
		}
	}
	for i := range a.tips {
		if t := &a.tips[i]; t.Span.Run == e.Span.Run && t.Span.Seq >= e.Span.Seq {
			return t.Context, nil
		}
	}
	return ContextID{}, nil
}

func (a *authorship) readTips(commit uint64) error {
	a.commit, a.tips = commit, a.tips[:0]
	for c, err := range a.engine.Feed(a.ctx, Cursor{Number: commit - 1}) {
		if err != nil {
			a.commit = 0
			return err
		}
		if c.Number != commit {
			break
		}
		for _, r := range c.Records {
			if t, ok := r.(*structure.Tip); ok {
				a.tips = append(a.tips, *t)
			}
		}
		break
	}
	return nil
}
