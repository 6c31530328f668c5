package api

import (
	"bytes"
	"context"
	"net/http"

	"github.com/lineage-store/lineage/lineage/records"
)

// record returns the current record of what an operation made, nil for nothing. A caller may repeat a request. If the
// caller may not see the thing any more, the error is ErrNotFound.
func (w *within) record(ctx context.Context, m *made) (records.Record, error) {
	switch {
	case m.Appended != nil:
		r := *m.Appended
		if m.branch != nil {
			r.Branch = *m.branch
			return &r, nil
		}
		var err error
		r.Branch, err = w.branchName(ctx, r.Context)
		return &r, err
	case m.Moved != nil:
		r := *m.Moved
		var err error
		r.Branch, err = w.branchName(ctx, r.Context)
		return &r, err
	case m.Merged != nil:
		return m.Merged, w.maySee(ctx, m.Merged.Target, m.Merged.Source)
	case m.Sent != nil:
		return m.Sent, w.maySee(ctx, m.Sent.From, m.Sent.To)
	case m.Value != nil:
		return w.valueRecord(ctx, m.Value)
	case m.Checkpoint != "":
		return w.checkpointRecord(ctx, m)
	case m.Summary != "":
		return w.summaryRecord(ctx, m)
	case m.Branch:
		return w.branchRecord(ctx, m)
	case m.Context != "":
		c, err := w.contextByID(ctx, m.Context)
		if err != nil {
			return nil, err
		}
		return records.OfContext(ctx, w.store, c.Context)
	case m.Thread != "":
		t, err := w.thread(ctx, m.Thread)
		if err != nil {
			return nil, err
		}
		return w.threadRecord(ctx, t)
	}
	return nil, nil
}

// branchName returns the current branch name of a context, empty for none.
func (w *within) branchName(ctx context.Context, id string) (string, error) {
	in, err := w.contextByID(ctx, id)
	if isGone(err) && w.caller.Scope.All() {
		return "", nil // deleted since
	}
	if err != nil {
		return "", err
	}
	return in.Branch, nil
}

// maySee returns ErrNotFound if the caller may not see one of these contexts.
func (w *within) maySee(ctx context.Context, contexts ...string) error {
	for _, id := range contexts {
		if _, err := w.branchName(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// sendMade answers with what an operation made.
func (c *call) sendMade(status int, m *made) error {
	if m.Contexts != nil {
		l, err := c.offered(c.r.Context(), m)
		if err != nil {
			return err
		}
		return c.send(status, l)
	}
	r, err := c.record(c.r.Context(), m)
	if err != nil {
		return err
	}
	if r == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if m.Found {
		status = http.StatusOK
	}
	if m.Appended != nil {
		c.w.Header().Set("Lineage-Tip", m.Appended.Tip)
	}
	return c.send(status, r)
}

// encodeMade writes the record of what an operation made, or null if it made nothing or that is gone.
func (w *within) encodeMade(ctx context.Context, b *bytes.Buffer, m *made) error {
	if m.Contexts != nil {
		l, err := w.offered(ctx, m)
		if isGone(err) {
			b.WriteString("null")
			return nil
		}
		if err != nil {
			return err
		}
		err = l.encode(b)
		b.Truncate(b.Len() - 1) // the newline
		return err
	}
	r, err := w.record(ctx, m)
	if isGone(err) || err == nil && r == nil {
		b.WriteString("null")
		return nil
	}
	if err != nil {
		return err
	}
	return encode(b, r)
}

// offered returns the records of alternatives that were made.
func (w *within) offered(ctx context.Context, m *made) (*list[*records.Alternative], error) {
	out := &list[*records.Alternative]{}
	for _, id := range m.Contexts {
		in, err := w.contextByID(ctx, id)
		if err != nil {
			return nil, err
		}
		info, err := in.Context.Info(ctx)
		if err != nil {
			return nil, err
		}
		r := &records.Alternative{SpanSet: records.ID(info.Set), Context: id}
		if info.Overrides.Model != nil {
			r.Model = *info.Overrides.Model
		}
		out.Items = append(out.Items, r)
	}
	return out, nil
}
