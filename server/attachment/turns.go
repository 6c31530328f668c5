package attachment

import (
	"net/http"
	"sync"
)

// turns limits the images that are decoded at once.
type turns struct {
	once sync.Once
	free chan struct{}
}

// wait waits for a turn, or for the end of the request. The caller must call done.
func (t *turns) wait(r *http.Request) (done func(), err error) {
	t.once.Do(func() { t.free = make(chan struct{}, decoding) })
	select {
	case t.free <- struct{}{}:
		return func() { <-t.free }, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
