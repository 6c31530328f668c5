package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/lineage-store/lineage/internal/amount"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/derived"
	"github.com/lineage-store/lineage/lineage/follow"
)

// Environment returns the locations of agents' folders.
func (a *App) Environment() (*follow.Environment, error) {
	environment, err := follow.NewEnvironment(a.getenv)
	if err != nil {
		err = Hint(err, "agents keep their sessions and configuration below the home directory")
	}
	return environment, err
}

// Machine returns the locations of agents' folders, and the identity of this machine.
func (a *App) Machine() (*follow.Environment, follow.Machine, error) {
	environment, err := a.Environment()
	if err != nil {
		return nil, follow.Machine{}, err
	}
	machine, err := environment.Machine()
	if err != nil {
		err = Hint(err, "what is known of files belongs to a machine: its id is kept in the folder of the user's configuration")
	}
	return environment, machine, err
}

// Follow calls do at once and then each time the store has changed, until do fails or the command is interrupted.
func (a *App) Follow(ctx context.Context, interval time.Duration, do func(context.Context, *OpenStore) error) error {
	began := false
	err := a.Open(ctx, Reading|NoThread, func(ctx context.Context, s *OpenStore) error {
		began = true
		return derived.Follow(ctx, s.Store, func(ctx context.Context) (lineage.Cursor, error) {
			head, err := s.Store.View().Head(ctx) // changes from here on are seen in the next round
			if err == nil {
				err = do(ctx, s)
			}
			return head, errors.Join(err, a.Flush())
		})
	})
	if began || !errors.Is(err, lineage.ErrLocked) {
		return err
	}
	return a.poll(ctx, interval, do)
}

// poll is like Follow, for a store that another process may keep locked. It opens the store only for a moment, when its
// files have changed, and waits while another process has it open.
func (a *App) poll(ctx context.Context, interval time.Duration, do func(context.Context, *OpenStore) error) error {
	dir, err := a.FindStore(MustExist)
	if err != nil {
		return err
	}
	for seen := ""; ; {
		// Later changes are seen in the next round.
		if state := journalState(dir); state != seen {
			err := a.Open(ctx, Reading|NoThread, do)
			if err == nil {
				seen = state
			} else if !errors.Is(err, lineage.ErrLocked) {
				return err
			}
			if err := a.Flush(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(interval):
		}
	}
}

// journalState returns a text that changes when a journal changes.
func journalState(dir string) string {
	entries, err := os.ReadDir(filepath.Join(dir, "journal"))
	if err != nil {
		return "?" + err.Error()
	}
	state := ""
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			state += e.Name() + info.ModTime().String() + amount.Count(info.Size())
		}
	}
	return state
}
