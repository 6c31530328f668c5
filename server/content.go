package server

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/server/attachment"
	"github.com/lineage-store/lineage/structure"
)

// maxUses limits how many uses of a content are looked at for one that a caller may read.
const maxUses = 10_000

// content sends a content of the store, as bytes that no browser takes for a document.
func (s *Server) content(w http.ResponseWriter, r *http.Request) {
	id, err := content.ParseID(r.PathValue("id"))
	if err != nil {
		s.refuse(w, r, http.StatusBadRequest, "invalid", "an id of content has 64 hexadecimal digits")
		return
	}
	if err := s.mayReadContent(r, id); err != nil {
		s.fail(w, r, err)
		return
	}
	body, err := s.o.Store.Body(r.Context(), id)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if err := s.images.Send(w, r, attachment.File{Name: id.Short(), Tag: id.String(), Body: body}); err != nil {
		s.fail(w, r, err)
	}
}

// mayReadContent returns ErrNotFound unless a message of a thread that the caller may read has a content: of the thread in
// the query, which may be a fork that shares it, else of the one in which the message was written.
func (s *Server) mayReadContent(r *http.Request, id content.ID) error {
	c, ctx := callerOf(r), r.Context()
	if c.scope.All() {
		return nil
	}
	var reach backend.Reach
	if text := r.URL.Query().Get("thread"); text != "" {
		thread, err := structure.ParseID[lineage.ThreadID](text)
		if err != nil {
			return fmt.Errorf("thread %.60q: %w", text, lineage.ErrInvalid)
		}
		if may, err := s.allows(ctx, c, thread); err != nil || !may {
			return errors.Join(err, fmt.Errorf("thread %v: %w", thread, lineage.ErrNotFound))
		}
		is, err := s.o.Store.View().Thread(ctx, thread)
		if err != nil {
			return err
		}
		if reach, err = backend.ReachOf(ctx, s.o.Store.View(), is); err != nil {
			return err
		}
	}
	threads := make(map[lineage.ThreadID]bool)
	uses := 0
	for use, err := range s.o.Store.View().Where(ctx, id) {
		if err != nil {
			return err
		}
		if uses++; uses > maxUses {
			break
		}
		if reach != nil {
			if reach.Has(use.Span) {
				return nil
			}
			continue
		}
		run, err := s.o.Store.View().Run(ctx, use.Span.Run)
		if err != nil {
			return err
		}
		if _, known := threads[run.Home.Thread]; known || run.Home.Thread.IsZero() {
			continue
		}
		is, err := s.o.Store.View().Thread(ctx, run.Home.Thread)
		if errors.Is(err, lineage.ErrNotFound) || err == nil && is.Home() != run.Home {
			continue // another thread had the id
		}
		if err != nil {
			return err
		}
		may, err := s.allows(ctx, c, run.Home.Thread)
		if err != nil || may {
			return err
		}
		threads[run.Home.Thread] = false
	}
	return fmt.Errorf("content %s: %w", id, lineage.ErrNotFound)
}
