package lineage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// Fields documented as JSON refuse other text, and nothing is stored.
func TestSettingsThatAreNotJSON(t *testing.T) {
	s := newStore(t)
	thread, c := newThread(t, s)
	at := say(t, c, "one")
	for _, test := range []struct {
		name string
		do   func(o lineage.Overrides, metadata []byte) error
	}{
		{"thread", func(o lineage.Overrides, metadata []byte) error {
			_, err := s.CreateThread(bg, lineage.ThreadOptions{Overrides: o, Metadata: metadata})
			return err
		}},
		{"context", func(o lineage.Overrides, metadata []byte) error {
			_, err := s.NewContext(bg, lineage.ContextOptions{Overrides: o, Metadata: metadata})
			return err
		}},
		{"fork", func(o lineage.Overrides, metadata []byte) error {
			_, err := c.Fork(bg, lineage.ForkOptions{Overrides: o, Metadata: metadata})
			return err
		}},
		{"empty fork", func(o lineage.Overrides, metadata []byte) error {
			_, err := c.Fork(bg, lineage.ForkOptions{Empty: true, Overrides: o, Metadata: metadata})
			return err
		}},
		{"subset", func(o lineage.Overrides, metadata []byte) error {
			_, err := c.Fork(bg, lineage.ForkOptions{Sees: &lineage.Filter{}, Overrides: o, Metadata: metadata})
			return err
		}},
		{"edit", func(o lineage.Overrides, metadata []byte) error {
			_, err := c.Edit(bg, at, lineage.User("two"), lineage.EditOptions{Overrides: o, Metadata: metadata})
			return err
		}},
		{"branch", func(o lineage.Overrides, metadata []byte) error {
			_, err := thread.CreateBranch(bg, string(o.JSON)+string(metadata), lineage.BranchOptions{Overrides: o, Metadata: metadata})
			return err
		}},
		{"alternatives", func(o lineage.Overrides, metadata []byte) error {
			_, err := c.Alternatives(bg, lineage.Overrides{}, lineage.Overrides{JSON: append(o.JSON, metadata...)})
			return err
		}},
		{"set", func(o lineage.Overrides, metadata []byte) error {
			if err := setOverrides(c, o); err != nil {
				return err
			}
			return setMetadata(c, metadata)
		}},
		{"update", func(o lineage.Overrides, metadata []byte) error {
			return thread.Update(bg, func(info *lineage.ThreadInfo) error { info.Metadata = append(o.JSON, metadata...); return nil })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, bad := range []string{"{", "planner", "{} {}", " "} {
				before, err := s.Stats(bg)
				require.NoError(t, err)
				require.ErrorIs(t, test.do(lineage.Overrides{JSON: []byte(bad)}, nil), lineage.ErrInvalid, "overrides %q", bad)
				require.ErrorIs(t, test.do(lineage.Overrides{}, []byte(bad)), lineage.ErrInvalid, "metadata %q", bad)
				after, err := s.Stats(bg)
				require.NoError(t, err)
				require.Equal(t, before.Contexts, after.Contexts)
			}
			require.NoError(t, test.do(lineage.Overrides{JSON: []byte(` {"a": 1}`)}, nil))
			require.NoError(t, test.do(lineage.Overrides{}, []byte("[1 ]\n")))
		})
	}
}

// Invalid JSON that reached the store below this package does not prevent changes that leave it
// alone.
func TestSettingsThatWereNeverJSON(t *testing.T) {
	s := newStore(t)
	at := time.Date(2026, 1, 9, 0, 0, 0, 0, time.UTC)
	id, main := structure.NewID[lineage.ThreadID](), structure.NewID[lineage.ContextID]()
	thread := structure.Thread{ID: id, Metadata: []byte("mine"), CreatedAt: at, UpdatedAt: at}
	active := thread
	active.Active = main
	_, err := write.Of(s).Engine().Apply(bg, &structure.Commit{Time: at, Records: []structure.Record{
		&thread,
		&structure.Context{ID: main, Thread: id, Overrides: lineage.Overrides{JSON: []byte("t=1")}, Metadata: []byte("mine"), CreatedAt: at},
		&structure.Branch{Thread: id, Name: lineage.MainBranch, Context: main, CreatedAt: at},
		&active,
	}}, backend.Options{})
	require.NoError(t, err)

	found, err := s.Thread(bg, id)
	require.NoError(t, err)
	require.NoError(t, found.Update(bg, func(settings *lineage.ThreadInfo) error { settings.Title = "A title"; return nil }))
	c := activeOf(t, found)
	require.NoError(t, c.Update(bg, func(settings *lineage.ContextInfo) error {
		settings.Overrides.Model = pointer("large")
		return nil
	}))
	require.NoError(t, setMetadata(c, []byte("mine")))
	err = setMetadata(c, []byte("yours"))
	require.ErrorIs(t, err, lineage.ErrInvalid)
	require.ErrorContains(t, err, main.String())
	info, err := c.Info(bg)
	require.NoError(t, err)
	require.Equal(t, lineage.Overrides{Model: pointer("large"), JSON: []byte("t=1")}, info.Overrides)
	require.Equal(t, "mine", string(info.Metadata))
}

func setOverrides(c *lineage.Context, o lineage.Overrides) error {
	return c.Update(bg, func(info *lineage.ContextInfo) error { info.Overrides = o; return nil })
}

func setMetadata(c *lineage.Context, metadata []byte) error {
	return c.Update(bg, func(info *lineage.ContextInfo) error { info.Metadata = metadata; return nil })
}
