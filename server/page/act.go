package page

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

// maxName limits the length of names and titles, and maxForm that of the form that has them.
const (
	maxName = 400
	maxForm = 16 << 10
)

// form parses the form of a request.
func form(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, refuse("The form cannot be read: %v.", err)
	}
	return r.PostForm, nil
}

// given returns a text field of a form.
func given(w http.ResponseWriter, r *http.Request, key string) (string, error) {
	f, err := form(w, r)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(f.Get(key))
	if text == "" || len(text) > maxName {
		return "", refuse("The %s has %d bytes. It may have 1 to %d.", key, len(text), maxName)
	}
	return text, nil
}

// done redirects to a view, with a message about what was done.
func done(w http.ResponseWriter, r *http.Request, to *subject, what string) error {
	q := url.Values{"did": {what}}
	if to.In != "" {
		q.Set("in", to.In)
	}
	http.Redirect(w, r, "/t/"+to.ID+"?"+q.Encode(), http.StatusSeeOther)
	return nil
}

func (p *Page) rename(w http.ResponseWriter, r *http.Request) error {
	t, err := p.threadOf(r)
	if err != nil {
		return err
	}
	title, err := given(w, r, "title")
	if err != nil {
		return err
	}
	was := r.PostForm.Get("was")
	err = t.Update(r.Context(), func(i *lineage.ThreadInfo) error {
		if markOf(i.Title) != was {
			return errMoved
		}
		i.Title = title
		return nil
	})
	if err != nil {
		return err
	}
	return done(w, r, &subject{ID: t.ID().String()}, "Renamed")
}

// shown returns the history that a form refers to, and its tip when the form was displayed. The error is errMoved if
// another branch has become active.
func (p *Page) shown(w http.ResponseWriter, r *http.Request) (subject *subject, tip lineage.SpanRef, err error) {
	f, err := form(w, r)
	if err != nil {
		return nil, tip, err
	}
	if subject, err = p.subjectOf(r, f.Get("in")); err != nil {
		return nil, tip, err
	}
	if subject.Context != f.Get("context") {
		return nil, tip, errMoved
	}
	if tip, err = structure.ParseSpanRef(f.Get("tip")); err != nil {
		return nil, tip, refuse("%.80q is no message.", f.Get("tip"))
	}
	return subject, tip, nil
}

// nameAt returns the name in a form, and the message at the form's position in its history. The error is errMoved if
// the history is no longer a continuation of the displayed one.
func (p *Page) nameAt(w http.ResponseWriter, r *http.Request) (name string, subject *subject, ref lineage.SpanRef, err error) {
	if name, err = given(w, r, "name"); err != nil {
		return name, nil, ref, err
	}
	subject, tip, err := p.shown(w, r)
	if err != nil {
		return name, nil, ref, err
	}
	length, err := p.o.Store.Position(r.Context(), tip)
	if errors.Is(err, lineage.ErrNotFound) {
		return name, nil, ref, errMoved
	}
	if err != nil {
		return name, nil, ref, err
	}
	common, err := p.o.Store.CommonPrefix(r.Context(), tip, subject.Tip)
	if err != nil {
		return name, nil, ref, err
	}
	if common < length {
		return name, nil, ref, errMoved
	}
	at, err := strconv.ParseUint(r.PostForm.Get("at"), 10, 63)
	if err != nil || at == 0 {
		return name, nil, ref, notPosition(r.PostForm.Get("at"))
	}
	ref, err = p.o.Store.At(r.Context(), tip, at)
	return name, subject, ref, err
}

// fork creates a branch after a message.
func (p *Page) fork(w http.ResponseWriter, r *http.Request) error {
	name, at, ref, err := p.nameAt(w, r)
	if err != nil {
		return err
	}
	o := lineage.BranchOptions{At: ref}
	if at.Context != "" {
		if o.From, err = p.contextOf(r.Context(), at); err != nil {
			return err
		}
	}
	c, err := at.Thread.CreateBranch(r.Context(), name, o)
	if err != nil {
		return err
	}
	return done(w, r, &subject{ID: at.ID, In: c.ID().String()}, "Branch "+name+" continues here")
}

func (p *Page) checkpoint(w http.ResponseWriter, r *http.Request) error {
	name, subject, ref, err := p.nameAt(w, r)
	if err != nil {
		return err
	}
	if _, err := subject.Thread.SetCheckpoint(r.Context(), name, lineage.CheckpointOptions{At: ref}); err != nil {
		return err
	}
	return done(w, r, subject, "Checkpoint "+name+" set")
}

// undo reverts the last move of a branch.
func (p *Page) undo(w http.ResponseWriter, r *http.Request) error {
	subject, tip, err := p.shown(w, r)
	if err != nil {
		return err
	}
	if subject.Context == "" {
		return refuse("There is no branch here that could be moved.")
	}
	c, err := p.contextOf(r.Context(), subject)
	if err != nil {
		return err
	}
	for _, err := range c.Reflog(r.Context()) {
		if err != nil {
			return err
		}
		if err := c.UndoFrom(r.Context(), tip); err != nil {
			return err
		}
		return done(w, r, subject, "Undone")
	}
	return refuse("There is nothing to undo: this branch was never moved back or replaced.")
}

// deleteView asks for confirmation before a thread is deleted.
type deleteView struct {
	*subject
	Messages uint64
	Branches int
}

func (p *Page) askDelete(w http.ResponseWriter, r *http.Request) error {
	subject, err := p.subjectOf(r, "")
	if err != nil {
		return err
	}
	v := &deleteView{subject: subject}
	if v.Messages, v.Branches, err = p.size(r.Context(), subject.Thread); err != nil {
		return err
	}
	return p.show(w, r, http.StatusOK, "delete", &pageData{Title: "Delete " + subject.Title, Body: v})
}

// size returns the number of messages and branches of a thread.
func (p *Page) size(ctx context.Context, t *lineage.Thread) (messages uint64, branches int, err error) {
	reach, err := p.reach(ctx, t)
	if err != nil {
		return 0, 0, err
	}
	all, err := t.Branches(ctx)
	return uint64(reach.Spans()), len(all), err
}

func (p *Page) delete(w http.ResponseWriter, r *http.Request) error {
	t, err := p.threadOf(r)
	if err != nil {
		return err
	}
	sure, err := given(w, r, "sure")
	if err != nil {
		return err
	}
	if sure != t.ID().String() {
		return refuse("The question was about another conversation. Nothing was deleted.")
	}
	if err := t.Delete(r.Context()); err != nil {
		return err
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
	return nil
}
