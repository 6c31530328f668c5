package write

import (
	"context"

	"github.com/lineage-store/lineage/lineage/backend"
)

// DoOnce is Do for a change that must be applied once even if an answer is lost.
func (w *Writer) DoOnce(ctx context.Context, b *Batch, c Change) (backend.Receipt, error) {
	session, err := w.sessions.Take(ctx, w.engine.Head)
	if err != nil {
		return backend.Receipt{}, err
	}
	defer w.sessions.Free(session)
	return w.Do(ctx, b, requestNumbers{c, session})
}

// requestNumbers gives each attempt at a change a request number.
type requestNumbers struct {
	Change
	session *backend.Once
}

func (n requestNumbers) Fill(ctx context.Context, b *Batch, t Try) error {
	n.session.Sequence++
	request := *n.session
	b.Once = &request
	return n.Change.Fill(ctx, b, t)
}
