package remote

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// TestEveryFieldIsWalked sends the types of the port with a value in every exported field, so that
// a new field must be added to its walker.
func TestEveryFieldIsWalked(t *testing.T) {
	walks(t, cursor)
	walks(t, contextState)
	walks(t, runInfo)
	walks(t, usageID)
	walks(t, found)
	walks(t, value)
	walks(t, valueKey)
	walks(t, home)
	walks(t, window)
	walks(t, stats)
	walks(t, threadListing)
	walks(t, threadQuery)
	walks(t, options)
	walks(t, receipt)
	walks(t, finding)
	walks(t, packOptions, "Progress")
	walks(t, packReport)
	walks(t, collectOptions, "Progress")
	walks(t, collectReport)
	walks(t, process)
	walks(t, copyPart)
	walks(t, lockedFailure)
	require.Equal(t, 2, reflect.TypeFor[backend.VerifyOptions]().NumField(), "Deep and Progress are walked one by one")
	require.Equal(t, 2, reflect.TypeFor[backend.PathOptions]().NumField(), "Bodies is walked, Passing is not needed")
}

func walks[T any](t *testing.T, walk func(*wire, *T), but ...string) {
	t.Helper()
	var want T
	n := 0
	fill(reflect.ValueOf(&want).Elem(), &n, but)
	out := newBody()
	walk(out, &want)
	require.NoError(t, out.err)
	var got T
	in := &wire{b: out.b[headerSize:], reading: true}
	walk(in, &got)
	require.NoError(t, in.end())
	require.Equal(t, want, got)
	for cut := range out.b[headerSize:] { // a message that is cut short is refused
		in := &wire{b: out.b[headerSize : headerSize+cut], reading: true}
		var part T
		walk(in, &part)
		require.Error(t, in.end(), "%T of %d bytes", part, cut)
	}
}

// fill gives every field another value.
func fill(v reflect.Value, n *int, but []string) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(int64(*n) * 1000).UTC()))
		return
	case structure.Value: // its fields exclude each other
		v.Set(reflect.ValueOf(structure.Value{
			ValueKey: structure.ValueKey{Owner: structure.Owner{Scope: structure.UserScope, Name: "u"}, Key: "k"},
			JSON:     []byte("1"), At: time.UnixMilli(7).UTC(),
		}))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !contains(but, f.Name) {
				fill(v.Field(i), n, but)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n, but)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n, but)
		fill(v.Index(1), n, but)
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), n, but)
		}
	case reflect.String:
		v.SetString(string(rune('a' + *n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32, reflect.Int8:
		v.SetInt(int64(*n % 100))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 16))
	case reflect.Uint64, reflect.Uint32:
		v.SetUint(uint64(*n))
	default:
		panic("a field of kind " + v.Kind().String())
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// TestEveryMethodIsServed compares the methods that are served with those of the port.
func TestEveryMethodIsServed(t *testing.T) {
	served := map[string]bool{"Close": true, "Recent": true, "StoreID": true, "Damage": true}
	for code, m := range serving {
		require.Equal(t, code, m.number())
		name := reflect.ValueOf(m).FieldByName("name").String()
		require.False(t, served[name], "%s is served twice", name)
		served[name] = true
	}
	for _, port := range []reflect.Type{
		reflect.TypeFor[backend.Engine](), reflect.TypeFor[backend.Packer](), reflect.TypeFor[backend.Collector](),
		reflect.TypeFor[backend.CopySource](), reflect.TypeFor[backend.Identified](), reflect.TypeFor[backend.Impaired](),
	} {
		for i := range port.NumMethod() {
			require.True(t, served[port.Method(i).Name], port.Method(i).Name)
		}
	}
}
