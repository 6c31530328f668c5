package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lineage-store/lineage/internal/embedded"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

const (
	workCold     = "reading a message that nothing is cached of"
	workColdMost = workCold + ", nine of ten"
	workColdOpen = "opening a closed archive and reading a message"

	coldMessages = 2_000
	coldOpenings = 5
)

// cold reads single messages of a packed archive, each after dropping the store's caches, and the
// first message of a store just opened.
func (r *run) cold(ctx context.Context, system, archive, dir string) error {
	open := func() (*embedded.Engine, *lineage.Store, error) {
		e, err := embedded.Open(ctx, dir, embedded.Options{Durability: lineage.Normal, MustExist: true})
		if err != nil {
			return nil, nil, err
		}
		return e, lineage.New(e), nil
	}
	e, s, err := open()
	if err != nil {
		return err
	}
	spans, err := spansOf(ctx, s)
	if err != nil || len(spans) == 0 {
		return errors.Join(err, s.Close())
	}
	random := rand.New(rand.NewPCG(r.config.Seed, streamCold))
	read := func(s *lineage.Store) error {
		entries, err := s.Span(ctx, spans[random.IntN(len(spans))])
		if err == nil && len(entries) == 0 {
			err = errors.New("a span has no message")
		}
		return err
	}
	var took []float64
	for range coldMessages {
		e.DropCaches()
		begin := time.Now()
		if err := read(s); err != nil {
			return errors.Join(err, s.Close())
		}
		took = append(took, float64(time.Since(begin)))
	}
	if err := s.Close(); err != nil {
		return err
	}
	row := Row{System: system, Archive: archive, Unit: unitNanos, Rounds: coldMessages, Operations: 1}
	row.Workload, row.Value, row.Low, row.High = workCold, quantile(took, 0.5), quantile(took, 0.25), quantile(took, 0.75)
	r.report.Rows = append(r.report.Rows, row)
	row.Workload, row.Value, row.Low, row.High = workColdMost, quantile(took, 0.9), quantile(took, 0.9), quantile(took, 0.99)
	r.report.Rows = append(r.report.Rows, row)

	took = took[:0]
	for range coldOpenings {
		begin := time.Now()
		_, s, err := open()
		if err != nil {
			return err
		}
		err = read(s)
		took = append(took, float64(time.Since(begin)))
		if err := errors.Join(err, s.Close()); err != nil {
			return fmt.Errorf("read a message of %s: %w", archive, err)
		}
	}
	row.Rounds = coldOpenings
	row.Workload, row.Value, row.Low, row.High = workColdOpen, quantile(took, 0.5), quantile(took, 0.25), quantile(took, 0.75)
	r.report.Rows = append(r.report.Rows, row)
	return nil
}

// spansOf lists all spans of a store.
func spansOf(ctx context.Context, s *lineage.Store) ([]structure.SpanRef, error) {
	var all []structure.SpanRef
	for c, err := range s.View().Feed(ctx, lineage.Cursor{}) {
		if err != nil {
			return nil, err
		}
		for _, record := range c.Records {
			if span, ok := record.(*structure.Span); ok {
				all = append(all, span.Ref)
			}
		}
	}
	return all, nil
}
