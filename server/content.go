package server

import (
	"fmt"
	"net/http"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/attachment"
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

// mayReadContent returns ErrNotFound unless a message of a thread that the caller may read has a content.
func (s *Server) mayReadContent(r *http.Request, id content.ID) error {
	c, ctx := callerOf(r), r.Context()
	if c.scope.All() {
		return nil
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
		run, err := s.o.Store.View().Run(ctx, use.Span.Run)
		if err != nil {
			return err
		}
		if _, known := threads[run.Home.Thread]; known || run.Home.Thread.IsZero() {
			continue
		}
		may, err := s.allows(ctx, c, run.Home.Thread)
		if err != nil || may {
			return err
		}
		threads[run.Home.Thread] = false
	}
	return fmt.Errorf("content %s: %w", id, lineage.ErrNotFound)
}
