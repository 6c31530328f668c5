package lineage_test

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
)

// The page about what to use when names methods and fields that exist.
func TestWhichNamesWhatExists(t *testing.T) {
	page, err := os.ReadFile("../docs/which.md")
	require.NoError(t, err)
	types := map[string]reflect.Type{}
	for _, v := range []any{
		&lineage.Store{}, &lineage.Thread{}, &lineage.Context{}, &lineage.Entry{}, &lineage.Resolved{}, &lineage.EditOptions{}, &lineage.CheckpointInfo{}, &lineage.BranchOptions{},
	} {
		types[reflect.TypeOf(v).Elem().Name()] = reflect.TypeOf(v)
	}
	named := regexp.MustCompile("`([A-Z][A-Za-z]*)\\.([A-Z][A-Za-z]*)`").FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(named), 30)
	for _, n := range named {
		of := types[n[1]]
		require.NotNil(t, of, n[0])
		_, method := of.MethodByName(n[2])
		_, field := of.Elem().FieldByName(n[2])
		require.True(t, method || field, n[0])
	}
}
