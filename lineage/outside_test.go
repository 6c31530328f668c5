package lineage

import (
	"context"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
)

// TestOutsideIsRefused calls every method of an engine that takes a context with that of a
// transaction on another handle of the same store. A method that is added later is called too.
func TestOutsideIsRefused(t *testing.T) {
	owner, err := Open(t.Context(), t.TempDir()+"/s", Options{})
	require.NoError(t, err)
	defer owner.Close()
	memory, err := OpenMemory(t.Context(), Options{})
	require.NoError(t, err)
	defer memory.Close()
	for _, s := range []*Store{owner, memory} {
		require.NoError(t, s.Update(t.Context(), func(ctx context.Context, _ *Tx) error {
			for _, err := range callAll(ctx, s) {
				require.ErrorIs(t, err, ErrInvalid)
				require.ErrorContains(t, err, "from outside of the transaction")
			}
			return nil
		}))
		var ended context.Context
		require.NoError(t, s.Update(t.Context(), func(ctx context.Context, _ *Tx) error { ended = ctx; return nil }))
		_, err := s.engine.Head(ended)
		require.NoError(t, err, "after the transaction its context is an ordinary one")
	}
}

// callAll calls each method of the engine of a store, with zero arguments, and returns their errors by name.
func callAll(ctx context.Context, s *Store) map[string]error {
	all := make(map[string]error)
	engine := reflect.TypeFor[backend.Engine]()
	for i := range engine.NumMethod() {
		m := engine.Method(i)
		if m.Type.NumIn() == 0 || m.Type.In(0) != reflect.TypeFor[context.Context]() {
			continue // Close and Recent
		}
		in := []reflect.Value{reflect.ValueOf(ctx)}
		for i := 1; i < m.Type.NumIn(); i++ {
			in = append(in, reflect.Zero(m.Type.In(i)))
		}
		out := reflect.ValueOf(s.engine).MethodByName(m.Name).Call(in)
		last := out[len(out)-1]
		if last.Type().CanSeq2() {
			for _, err := range last.Seq2() {
				all[m.Name], _ = err.Interface().(error)
				break
			}
			continue
		}
		all[m.Name], _ = last.Interface().(error)
	}
	return all
}

// TestTransactionOfAnotherStore uses one store within a transaction of another, and the first again
// from within a transaction of the second.
func TestTransactionOfAnotherStore(t *testing.T) {
	one, err := OpenMemory(t.Context(), Options{})
	require.NoError(t, err)
	defer one.Close()
	two, err := OpenMemory(t.Context(), Options{})
	require.NoError(t, err)
	defer two.Close()
	require.NoError(t, one.Update(t.Context(), func(ctx context.Context, _ *Tx) error {
		_, err := two.NewContext(ctx, ContextOptions{})
		require.NoError(t, err)
		return two.Update(ctx, func(ctx context.Context, _ *Tx) error {
			_, err := one.NewContext(ctx, ContextOptions{})
			require.ErrorIs(t, err, ErrInvalid)
			_, err = two.NewContext(ctx, ContextOptions{})
			require.ErrorIs(t, err, ErrInvalid)
			return nil
		})
	}))
}

// TestSecondHandleInTransaction uses another handle on the directory, and its threads and contexts,
// with the context of a transaction: nothing of that takes effect.
func TestSecondHandleInTransaction(t *testing.T) {
	dir := t.TempDir() + "/s"
	s, err := Open(t.Context(), dir, Options{})
	require.NoError(t, err)
	defer s.Close()
	other, err := Open(t.Context(), dir, Options{})
	require.NoError(t, err)
	defer other.Close()
	made, err := s.NewContext(t.Context(), ContextOptions{})
	require.NoError(t, err)
	for _, handle := range []*Store{s, other} {
		c, err := handle.Context(t.Context(), made.ID())
		require.NoError(t, err)
		for name, call := range map[string]func(ctx context.Context) error{
			"extend": func(ctx context.Context) error { _, err := c.Extend(ctx, User("lost")); return err },
			"fork":   func(ctx context.Context) error { _, err := c.Fork(ctx, ForkOptions{}); return err },
			"delete": c.Delete,
			"info":   func(ctx context.Context) error { _, err := c.Info(ctx); return err },
			"read":   func(ctx context.Context) error { _, err := c.Resolve(ctx, ResolveOptions{}); return err },
			"thread": func(ctx context.Context) error { _, err := handle.CreateThread(ctx, ThreadOptions{}); return err },
			"update": func(ctx context.Context) error {
				return handle.Update(ctx, func(context.Context, *Tx) error { return nil })
			},
			"collect": func(ctx context.Context) error { _, err := handle.Collect(ctx, CollectOptions{}); return err },
			"view":    func(ctx context.Context) error { _, err := handle.View().Head(ctx); return err },
		} {
			err := s.Update(t.Context(), func(ctx context.Context, _ *Tx) error { return call(ctx) })
			require.ErrorIs(t, err, ErrInvalid, name)
		}
	}
	head, err := other.View().Head(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, head.Number, "only the context was made")
}
