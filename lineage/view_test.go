package lineage_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
)

// A view reads the latest state and has only the methods of backend.View.
func TestView(t *testing.T) {
	s, err := lineage.Open(bg, t.TempDir(), lineage.Options{})
	require.NoError(t, err)
	v := s.View()
	require.Equal(t, methodsOf(reflect.TypeFor[backend.View]()), methodsOf(reflect.TypeOf(v)))
	hidden := reflect.ValueOf(v).Field(0)
	require.False(t, hidden.CanInterface(), "the engine is reached by reflection")

	for i := range uint64(3) {
		snapshot, err := v.Snapshot(bg)
		require.NoError(t, err)
		_, writes := reflect.TypeOf(snapshot).MethodByName("Apply")
		require.False(t, writes)
		thread, err := s.CreateThread(bg, lineage.ThreadOptions{})
		require.NoError(t, err)

		record, err := v.Thread(bg, thread.ID())
		require.NoError(t, err)
		require.Equal(t, thread.ID(), record.ID)
		_, err = snapshot.Thread(bg, thread.ID())
		require.ErrorIs(t, err, lineage.ErrNotFound, "a snapshot sees a later commit")
		head, err := snapshot.Head(bg)
		require.NoError(t, err)
		require.NoError(t, snapshot.Close())
		now, err := v.Wait(bg, head)
		require.NoError(t, err)
		var numbers []uint64
		for c, err := range v.Feed(bg, head) {
			require.NoError(t, err)
			numbers = append(numbers, c.Number)
		}
		require.Equal(t, []uint64{i + 1}, numbers)
		require.Equal(t, i+1, now.Number)
	}
	require.NoError(t, s.Close())
	_, err = v.Head(bg)
	require.ErrorIs(t, err, lineage.ErrClosed)
}

func methodsOf(of reflect.Type) (names []string) {
	for i := range of.NumMethod() {
		names = append(names, of.Method(i).Name)
	}
	return names
}
