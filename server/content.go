package server

import (
	"fmt"
	"net/http"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/server/attachment"
	"github.com/lineage-store/lineage/structure"
)

// content sends content of the store, in a way that no browser treats as a document.
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

// mayReadContent returns ErrNotFound unless the content is in a message that the caller may read: see
// access.Scope.HasContent. The query may name a thread.
func (s *Server) mayReadContent(r *http.Request, id content.ID) error {
	var thread lineage.ThreadID
	if text := r.URL.Query().Get("thread"); text != "" {
		var err error
		if thread, err = structure.ParseID[lineage.ThreadID](text); err != nil {
			return fmt.Errorf("thread %.60q: %w", text, lineage.ErrInvalid)
		}
	}
	has, err := callerOf(r).scope.HasContent(r.Context(), s.o.Store.View(), id, thread)
	if err == nil && !has {
		err = fmt.Errorf("content %s: %w", id, lineage.ErrNotFound)
	}
	return err
}
