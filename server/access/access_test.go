//test:race

package access

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/structure"
)

func id(n byte) (id structure.StoreID) {
	id[0] = n
	return id
}

// TestFile changes the tokens of two stores through two handles each.
func TestFile(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	a, b, other := Open(dir, id(1)), Open(dir, id(1)), Open(dir, id(2))
	now := time.Now()
	empty, err := a.List()
	require.NoError(t, err)
	require.Empty(t, empty)
	_, err = a.Check("lineage_x", now)
	require.ErrorIs(t, err, ErrRefused)
	host, err := a.Host(ctx)
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{20}\.localhost$`, host)
	same, err := b.Host(ctx)
	require.NoError(t, err)
	require.Equal(t, host, same)
	different, err := other.Host(ctx)
	require.NoError(t, err)
	require.NotEqual(t, host, different)

	made, secret, err := a.Create(ctx, Token{Name: "ci", Writes: true, Scope: Scope{Users: []string{"ada"}}, Expires: now.Add(time.Hour)})
	require.NoError(t, err)
	got, err := b.Check(secret, now)
	require.NoError(t, err)
	require.Equal(t, made.ID, got.ID)
	require.Equal(t, made.Scope, got.Scope)
	_, err = b.Check(secret, now.Add(time.Hour))
	require.ErrorIs(t, err, ErrRefused)
	_, err = other.Check(secret, now)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorIs(t, b.Delete(ctx, "nothing"), lineage.ErrNotFound)
	require.NoError(t, b.Delete(ctx, made.ID))
	_, err = a.Check(secret, now)
	require.ErrorIs(t, err, ErrRefused, "the other handle has deleted it")

	info, err := os.Stat(a.path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	_, secret, err = a.Create(ctx, Token{})
	require.NoError(t, err)
	text, err := os.ReadFile(a.path)
	require.NoError(t, err)
	require.NotContains(t, string(text), strings.TrimPrefix(secret, prefix), "only hashes are kept")
}

func TestManyCreateAtOnce(t *testing.T) {
	defer func(was time.Duration) { lockTimeout = was }(lockTimeout)
	lockTimeout = 2 * time.Minute // one of them may be slow
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, _, err := Open(dir, id(1)).Create(t.Context(), Token{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := Open(dir, id(1)).List()
	require.NoError(t, err)
	require.Len(t, got, 8)
}

func TestBadFiles(t *testing.T) {
	f := Open(t.TempDir(), id(1))
	_, secret, err := f.Create(t.Context(), Token{})
	require.NoError(t, err)
	good, err := os.ReadFile(f.path)
	require.NoError(t, err)
	for name, text := range map[string]string{
		"nothing":         "",
		"half":            string(good[:len(good)/2]),
		"another version": strings.Replace(string(good), `"version": 1`, `"version": 2`, 1),
		"another limit":   strings.Replace(string(good), `"created"`, `"only_on_sundays": true, "created"`, 1),
		"another host":    strings.Replace(string(good), ".localhost", ".example", 1),
		"a short hash":    strings.Replace(string(good), `"hash": "`, `"hash": "0`, 1),
	} {
		require.NoError(t, os.WriteFile(f.path, []byte(text), 0o600))
		_, err := f.Check(secret, time.Now())
		require.ErrorIs(t, err, ErrDamaged, name)
		_, _, err = f.Create(t.Context(), Token{})
		require.ErrorIs(t, err, ErrDamaged, name)
		left, err := os.ReadFile(f.path)
		require.NoError(t, err)
		require.Equal(t, text, string(left), "a damaged file is kept")
	}
	require.NoError(t, os.Remove(f.path))
	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.WriteFile(outside, good, 0o600))
	require.NoError(t, os.Symlink(outside, f.path))
	_, err = f.Check(secret, time.Now())
	require.ErrorIs(t, err, lineage.ErrNotRegular)
}

func TestLimits(t *testing.T) {
	f := Open(t.TempDir(), id(1))
	for _, wrong := range []Token{
		{Name: strings.Repeat("x", maxText+1)}, {Scope: Scope{Users: []string{""}}}, {Scope: Scope{Projects: []string{""}}},
		{Scope: Scope{Users: make([]string, maxScope+1)}},
	} {
		_, _, err := f.Create(t.Context(), wrong)
		require.ErrorIs(t, err, lineage.ErrInvalid)
	}
}

func TestScope(t *testing.T) {
	thread := &lineage.ThreadInfo{UserID: "ada", Metadata: []byte(`{"cwd":"/src/a"}`)}
	for _, one := range []struct {
		scope Scope
		want  bool
	}{
		{Scope{}, true},
		{Scope{Users: []string{"ada"}}, true},
		{Scope{Users: []string{"bob"}}, false},
		{Scope{Projects: []string{"/src/b", "/src/a"}}, true},
		{Scope{Projects: []string{"/src"}}, false},
		{Scope{Users: []string{"bob"}, Projects: []string{"/src/a"}}, false},
		{Scope{Users: []string{"ada"}, Projects: []string{"/src/a"}}, true},
	} {
		require.Equal(t, one.want, one.scope.Allows(thread), "%+v", one.scope)
	}
	for _, metadata := range []string{"", "null", "[]", `{"cwd":1}`, `{"cwd":["/src/a"]}`, "{"} {
		none := Scope{Projects: []string{"/src/a"}}
		require.False(t, none.Allows(&lineage.ThreadInfo{Metadata: []byte(metadata)}), metadata)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"host":"00000000000000000000.localhost","tokens":[{"id":"x","hash":"` + strings.Repeat("0", 64) + `"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode(b)
		if err != nil {
			require.ErrorIs(t, err, ErrDamaged)
			return
		}
		again, err := json.Marshal(c)
		require.NoError(t, err)
		_, err = decode(again)
		require.NoError(t, err)
	})
}
