package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/lineage-store/lineage/lineage/chat"
)

// last returns the message that becomes the head.
func (a *attempt) last() *chat.Message { return &a.request.Messages[len(a.request.Messages)-1] }

// Save appends the pending messages to the branch and returns the new head, or an empty one if
// nothing is pending. All messages are saved, or none and all stay pending.
//
// If others have appended meanwhile, the messages follow the new head.
//
// A message with the id of a saved one but other content is a new version of it. The saved one is
// not replaced: the messages go to a new branch that forks before the earliest such message and
// becomes active, and new versions get new ids. Of several pending versions of a message, the last
// one is saved. A message that equals the saved one is not saved again if the history already has
// it.
//
// If the store fails in a way that leaves the result unknown, the next operation finds out, so that
// messages are not saved twice.
func (e *Engine) Save(ctx context.Context) (chat.Ref, error) {
	end, err := e.begin(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	settled, err := e.settle(ctx)
	if err != nil {
		return "", err
	}
	for {
		pending := e.waiting()
		if len(pending) == 0 {
			return settled, nil
		}
		head, late, err := e.save(ctx, pending)
		if late == "" {
			return head, err
		}
		settled = late // the others are still pending
	}
}

// save saves the pending messages. late is the head of an earlier save that is only now known to have succeeded.
func (e *Engine) save(ctx context.Context, pending []*Fragment) (head, late chat.Ref, err error) {
	at, err := e.current(ctx)
	if err != nil {
		return "", "", err
	}
	p := plan{at: at, createdAt: now(), known: make(map[string]bool)}
	for {
		a, err := e.attempt(ctx, &p, pending)
		if err != nil {
			return "", "", err
		}
		if len(a.request.Messages) == 0 { // all are saved already
			e.saved(a)
			return e.Head(), "", nil
		}
		head, refusal := e.store.Append(ctx, a.request)
		if refusal == nil {
			e.saved(a)
			return head, "", nil
		}
		if !isRefusal(refusal) {
			e.mu.Lock()
			e.unsure = a
			e.mu.Unlock()
			return "", "", refusal
		}
		if late, err := e.settle(ctx); err != nil || late != "" {
			return "", late, err
		}
		retry, err := e.again(ctx, &p, a, refusal)
		if err != nil {
			return "", "", err
		}
		if !retry {
			return "", "", refusal
		}
	}
}

// plan is the state that a new branch or an attempt is based on, apart from the messages.
type plan struct {
	at        chat.Branch
	createdAt int64
	// known are message ids that the store has refused as taken. Only then new versions of saved messages are
	// searched for.
	known map[string]bool
	taken []string // branch names that are taken
}

// again updates the plan after a refused attempt and reports whether to retry. A refusal without an
// explanation is final.
func (e *Engine) again(ctx context.Context, p *plan, a *attempt, refusal error) (bool, error) {
	var about *chat.Error
	switch {
	case errors.Is(refusal, chat.ErrHeadMoved):
		was := p.at.HeadMessageID
		at, err := e.current(ctx)
		p.at = at
		return at.HeadMessageID != was, err
	case isTaken(refusal) && a.request.NewBranch != nil:
		p.taken = append(p.taken, a.request.NewBranch.Name)
		return true, nil
	case errors.As(refusal, &about) && about.Subject == chat.SubjectMessage &&
		(errors.Is(refusal, chat.ErrExists) || errors.Is(refusal, chat.ErrOwnParent)): // the head is one of the messages
		if p.known[about.ID] {
			return false, nil
		}
		p.known[about.ID] = true
		return true, nil
	}
	return false, nil
}

// isRefusal reports whether an error means that the store changed nothing.
func isRefusal(err error) bool {
	refusals := []error{chat.ErrHeadMoved, chat.ErrExists, chat.ErrNotFound, chat.ErrInvalid, chat.ErrOtherChat, chat.ErrOwnParent}
	return slices.ContainsFunc(refusals, func(known error) bool { return errors.Is(err, known) })
}

// attempt prepares an append of the pending messages.
func (e *Engine) attempt(ctx context.Context, p *plan, pending []*Fragment) (*attempt, error) {
	ready, err := e.concrete(ctx, p.at.HeadMessageID, pending)
	if err != nil {
		return nil, err
	}
	a := &attempt{request: chat.AppendRequest{ChatID: e.chatID}, pending: pending}
	l := pendingHistory{after: p.at.HeadMessageID, fragments: ready.fragments}
	if len(p.known) > 0 || ready.updates {
		if l, err = e.pendingHistory(ctx, p.at.HeadMessageID, ready.fragments); err != nil {
			return nil, err
		}
	}
	if len(l.versions) == 0 {
		a.request.BranchID, a.request.ExpectedHead = p.at.ID, l.after
	} else if a.request.NewBranch, err = e.newBranch(ctx, p, l.after, !e.keepActive); err != nil {
		return nil, err
	}
	parent := l.after
	for _, f := range l.fragments {
		m, err := stored(f, l.versions[f.ID])
		if err != nil {
			return nil, err
		}
		m.ChatID, m.ParentID, m.CreatedAt = e.chatID, parent, p.createdAt
		a.request.Messages = append(a.request.Messages, m)
		parent = chat.Ref(m.ID)
	}
	return a, nil
}

// newBranch returns a new branch that begins after a message. Its name derives from that of the plan's branch.
func (e *Engine) newBranch(ctx context.Context, p *plan, after chat.Ref, active bool) (*chat.Branch, error) {
	name, err := chat.NextBranchName(ctx, e.store, e.chatID, p.at.Name, p.taken)
	return &chat.Branch{
		ID: chat.NewID(), ChatID: e.chatID, Name: name, HeadMessageID: after, IsActive: active, CreatedAt: p.createdAt,
	}, err
}

// concrete are pending messages ready to be saved.
type concrete struct {
	fragments []Fragment
	// updates is set if a lazy message became a new version of a saved one.
	updates bool
}

// concrete resolves lazy messages to the newest assistant message, pending or before head, and
// keeps one version of each message: the last, at the place of the first.
func (e *Engine) concrete(ctx context.Context, head chat.Ref, pending []*Fragment) (concrete, error) {
	var others, lazy []*Fragment
	target := ""
	for _, f := range pending {
		if IsLazy(*f) {
			lazy = append(lazy, f)
			continue
		}
		others = append(others, f)
		if f.Name == RoleAssistant {
			target = f.ID
		}
	}
	if target != "" { // lazy messages replace it, even those that were set earlier
		pending = append(others, lazy...)
	}
	var out concrete
	places := make(map[string]int, len(pending))
	for _, p := range pending {
		f := *p
		if IsLazy(f) {
			if target == "" {
				saved, err := e.lastAssistant(ctx, head)
				if err != nil {
					return concrete{}, err
				}
				target, out.updates = saved, saved != ""
			}
			f = f.Resolve(target)
			target = f.ID
		}
		if i, ok := places[f.ID]; ok {
			out.fragments[i] = f
			continue
		}
		places[f.ID] = len(out.fragments)
		out.fragments = append(out.fragments, f)
	}
	return out, nil
}

// lastAssistant returns the id of the newest assistant message up to head, or "".
func (e *Engine) lastAssistant(ctx context.Context, head chat.Ref) (string, error) {
	for at := head; at != ""; {
		m, err := e.store.Message(ctx, e.chatID, string(at))
		if err != nil {
			return "", err
		}
		if m == nil {
			return "", &chat.Error{Subject: chat.SubjectMessage, ID: string(at), ChatID: e.chatID, Err: chat.ErrNotFound}
		}
		if m.Name == RoleAssistant {
			return m.ID, nil
		}
		at = m.ParentID
	}
	return "", nil
}

// saved records a successful save. Messages set since then stay pending.
func (e *Engine) saved(a *attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b := a.request.NewBranch; b != nil {
		e.branch = *b
	}
	if len(a.request.Messages) > 0 {
		e.branch.HeadMessageID = chat.Ref(a.last().ID)
	}
	saved := make(map[*Fragment]bool, len(a.pending))
	for _, f := range a.pending {
		saved[f] = true
	}
	e.pending = slices.DeleteFunc(e.pending, func(f *Fragment) bool { return saved[f] })
	e.unsure = nil
}

// settle checks whether the save with an unknown result succeeded. If so, it returns its head. Until another save
// succeeds, the store may still carry it out.
func (e *Engine) settle(ctx context.Context) (chat.Ref, error) {
	e.mu.Lock()
	a := e.unsure
	e.mu.Unlock()
	if a == nil {
		return "", nil
	}
	wanted := a.last()
	m, err := e.own(ctx, wanted.ID)
	if err != nil || m == nil || !m.Same(*wanted) {
		return "", err
	}
	e.saved(a)
	return chat.Ref(wanted.ID), nil
}

// isTaken reports whether an error says that a branch name is taken.
func isTaken(err error) bool {
	var e *chat.Error
	return errors.As(err, &e) && e.Subject == chat.SubjectBranch && errors.Is(err, chat.ErrExists)
}

// start is begin; it also settles an earlier save with an unknown result.
func (e *Engine) start(ctx context.Context) (end func(), err error) {
	end, err = e.begin(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := e.settle(ctx); err != nil {
		end()
		return nil, err
	}
	return end, nil
}
