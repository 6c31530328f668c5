package attachment

import (
	"net/http"
	"sync"
)

// decoding is the number of images that are decoded at once, each with up to 8 bytes per pixel.
const decoding = 2

// gate limits the images that are decoded at once.
type gate struct {
	once sync.Once
	free chan struct{}
}

// enter waits until another image may be decoded, or for the end of the request. The caller must call done.
func (g *gate) enter(r *http.Request) (done func(), err error) {
	g.once.Do(func() { g.free = make(chan struct{}, decoding) })
	select {
	case g.free <- struct{}{}:
		return func() { <-g.free }, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
