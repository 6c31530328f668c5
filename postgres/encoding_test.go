package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/internal/pgtest"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/search"
)

// TestEncodings opens stores in databases with other encodings, also where clients have another one by default. Only names of stores are
// text: other programs read them, and a name that the database cannot have is refused.
func TestEncodings(t *testing.T) {
	const said = "日本語 größe 😀"
	for _, c := range []struct {
		encoding, clients, name string
		refused                 string // a name
	}{
		{"EUC_JP", "SJIS", "日本", "😀"}, {"LATIN1", "MULE_INTERNAL", "größe", "日本"}, {"SQL_ASCII", "LATIN1", "größe日本", ""}, {"UTF8", "LATIN1", "größe日本", ""},
	} {
		for _, clients := range []string{"", c.clients} {
			t.Run(c.encoding+clients, func(t *testing.T) {
				dsn := pgtest.Encoded(t, c.encoding)
				admin := newPool(t, dsn, nil)
				if clients != "" {
					_, err := admin.Exec(background, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET client_encoding = `+clients+`', current_database()); END $$`, exec)
					require.NoError(t, err)
				}
				var engines []*Engine
				for range 2 {
					e, err := Open(background, dsn, Options{Store: c.name, Unsafe: true})
					require.NoError(t, err)
					defer e.Close()
					engines = append(engines, e)
				}
				thread := tell(t, engines[0], said)
				requireSaid(t, engines[1], thread, said)
				require.Equal(t, []string{"日本語 <mark>größe</mark> 😀"}, snippets(t, searching(t, lineage.New(engines[1]), search.Options{}), "größe"))
				requireSound(t, engines[0])
				var bytes []byte
				require.NoError(t, admin.QueryRow(background, `SELECT convert_to(name, 'UTF8') FROM lineage_store`, exec).Scan(&bytes))
				require.Equal(t, c.name, string(bytes))
				if c.refused != "" {
					_, err := Open(background, dsn, Options{Store: c.refused, Unsafe: true})
					require.Equal(t, "22P05", sqlState(err), "%v", err)
				}
			})
		}
	}
}
