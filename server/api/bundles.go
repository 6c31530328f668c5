package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/lineage/bundle"
	"github.com/lineage-store/lineage/lineage/records"
	"github.com/lineage-store/lineage/server/problem"
)

type bundleQuery struct {
	Threads []string `json:"-" query:"thread" doc:"only these threads; default the whole store"`
}

// bundle sends a bundle of threads, or of the whole store.
func (a *API) bundle(ctx context.Context, c *call, in *bundleQuery) error {
	return c.sendBundle(ctx, in, nil)
}

// inventory sends the list of what the store has.
func (a *API) inventory(ctx context.Context, c *call, _ *struct{}) error {
	inventory, err := bundle.Take(ctx, a.o.Store)
	if err != nil {
		return err
	}
	return c.attach("application/octet-stream", "lineage.inventory", func(w io.Writer) error {
		_, err := inventory.WriteTo(w)
		return err
	})
}

// bundleAgainst sends a bundle of what another store lacks. The body is the inventory of that store.
func (a *API) bundleAgainst(ctx context.Context, c *call, in *bundleQuery) error {
	if err := c.refuseKey("it changes nothing"); err != nil {
		return err
	}
	release, err := c.hold(maxBodies)
	if err != nil {
		return err
	}
	defer release()
	inventory := bundle.NewInventory()
	if _, err := inventory.ReadFrom(http.MaxBytesReader(c.w, c.r.Body, maxBodies)); err != nil {
		return refused(err)
	}
	return c.sendBundle(ctx, in, inventory)
}

func (c *call) sendBundle(ctx context.Context, in *bundleQuery, inventory *bundle.Inventory) error {
	o := bundle.WriteOptions{Have: inventory}
	for _, name := range in.Threads {
		t, err := c.thread(ctx, name)
		if err != nil {
			return err
		}
		o.Threads = append(o.Threads, t.ID())
	}
	return c.attach("application/octet-stream", "lineage.bundle", func(w io.Writer) error {
		_, err := bundle.Write(ctx, c.a.o.Store, w, o)
		return err
	})
}

type importBundle struct {
	OnConflict string `json:"-" query:"on_conflict" doc:"what happens to a context that has advanced here and in the bundle: keep-both (default), take-theirs or fail"`
}

func (a *API) importBundle(ctx context.Context, c *call, in *importBundle) error {
	if err := c.refuseKey("a bundle that is imported again adds nothing"); err != nil {
		return err
	}
	var o bundle.ImportOptions
	var err error
	if in.OnConflict != "" {
		if o.OnConflict, err = bundle.ParseOnConflict(in.OnConflict); err != nil {
			return fmt.Errorf("on_conflict: %w", err)
		}
	}
	report, err := bundle.Import(ctx, a.o.Store, c.r.Body, o)
	if err != nil {
		return refused(err)
	}
	report.Conflicts = append([]bundle.Conflict{}, report.Conflicts...)
	return c.send(http.StatusOK, &records.Unbundled{ImportReport: report})
}

// refused returns the error for a bundle or inventory that is not read. Damage of the store is not the caller's fault.
func refused(err error) error {
	var damage *lineage.CorruptError
	var missing *bundle.MissingError
	var conflict *bundle.ConflictError
	var size *http.MaxBytesError
	switch {
	case errors.As(err, &size):
		return err
	case errors.As(err, &conflict):
		return problem.New(http.StatusConflict, "conflict", err.Error())
	case errors.As(err, &missing):
		return fmt.Errorf("%w: %s: the bundle leaves it out, because it was written for a store that has it", lineage.ErrInvalid, err)
	case errors.Is(err, bundle.ErrNoInventory), errors.As(err, &damage) && (damage.File == "bundle" || damage.File == "inventory"), errors.Is(err, backend.ErrNewerFormat), errors.Is(err, backend.ErrOlderFormat):
		return fmt.Errorf("%w: %s", lineage.ErrInvalid, err)
	}
	return err
}
