package embedded

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/campaign"
	"github.com/lineage-store/lineage/internal/embedded/keys"
	"github.com/lineage-store/lineage/internal/index"
	"github.com/lineage-store/lineage/internal/journal"
	"github.com/lineage-store/lineage/internal/logline"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
)

// entriesOf counts the entries of each table in the index, without packs.
func entriesOf(t *testing.T, e *Engine) map[byte]int {
	t.Helper()
	s := e.index.Snapshot()
	defer s.Close()
	n := map[byte]int{}
	for e, err := range s.Scan(nil, nil) {
		require.NoError(t, err)
		n[e.Key[0]]++
	}
	return n
}

// requireTalk reads the messages of openPacked through all access paths.
func requireTalk(t *testing.T, r backend.Reader, n uint64) {
	t.Helper()
	run := structure.DeriveID[structure.RunID]("run")
	last, err := r.Last(background, run)
	require.NoError(t, err)
	require.Equal(t, structure.SpanRef{Run: run, Seq: n}, last)
	seq := uint64(0)
	for step, err := range r.Path(background, last, structure.Window{}, backend.PathOptions{Bodies: true}) {
		require.NoError(t, err)
		seq++
		require.Equal(t, fmt.Sprintf("message %d of a conversation that goes on and on", seq), string(step.Blocks[0].Body))
	}
	require.Equal(t, n, seq)
	for i := uint64(1); i <= n; i += 1 + n/40 {
		id := content.Sum(fmt.Appendf(nil, "message %d of a conversation that goes on and on", i))
		blocks, err := r.Blocks(background, []content.ID{id})
		require.NoError(t, err)
		require.Equal(t, id, content.Sum(blocks[0].Body))
		ref := structure.SpanRef{Run: run, Seq: i}
		_, err = r.Digest(background, ref)
		require.NoError(t, err)
		var used []structure.UsageID
		for u, err := range r.Where(background, id) {
			require.NoError(t, err)
			used = append(used, u)
		}
		require.Equal(t, []structure.UsageID{{Span: ref}}, used)
	}
	has, err := r.Has(background, []content.ID{content.Sum([]byte("never said"))})
	require.NoError(t, err)
	require.Equal(t, []bool{false}, has)
	_, err = r.Digest(background, structure.SpanRef{Run: run, Seq: n + 1})
	require.ErrorIs(t, err, backend.ErrNotFound)
	_, err = r.Digest(background, structure.SpanRef{Run: structure.RunID{1}, Seq: 1})
	require.ErrorIs(t, err, backend.ErrNotFound)
}

// Entries that packs replace are dropped from the index, and are not in a rebuilt one;
// an earlier snapshot reads the same as before.
//
//test:norace
func TestEntriesLeaveTheIndex(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 600)
	before := entriesOf(t, e)
	require.Equal(t, 600, before[keys.TableBlock])
	require.Equal(t, 600, before[keys.TableSpan])
	require.Equal(t, 3, before[keys.TableCommit])
	s, err := e.Snapshot(background)
	require.NoError(t, err)
	_, err = e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	for i := uint64(601); i <= 700; i++ {
		_, err := e.Apply(background, message(i), backend.Options{})
		require.NoError(t, err)
	}
	requireTalk(t, s, 600)
	check := func(packed int) {
		t.Helper()
		requireTalk(t, e, 700)
		got := entriesOf(t, e)
		require.Equal(t, 700-packed, got[keys.TableBlock])
		require.Equal(t, 700-packed+packed/keys.DigestEvery, got[keys.TableSpan])
		require.Equal(t, 1, got[keys.TablePackedUpTo])
		require.Equal(t, before[keys.TableRun], got[keys.TableRun])
		requireSound(t, e)
	}
	check(600)
	_, err = e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	require.Zero(t, entriesOf(t, e)[keys.TableCommit])
	check(700)
	requireTalk(t, s, 600)
	require.NoError(t, s.Close())
	require.NoError(t, e.Close())
	for range 2 {
		e, err = Open(background, dir, Options{Durability: backend.Normal})
		require.NoError(t, err)
		check(700)
		require.NoError(t, e.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, indexFile)))
	}
}

// An interruption between packing and dropping entries leaves at most duplicates.
//
//test:norace
func TestEntriesTwice(t *testing.T) {
	for _, name := range []string{"before it is said", "before they go", "half way"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			e := openPacked(t, dir, 300)
			require.NoError(t, e.journal.Seal())
			segments := e.journal.Segments()
			last := segments[len(segments)-2].Last
			_, err := e.journal.Rewrite(background, 1, last, journal.RewriteOptions{})
			require.NoError(t, err)
			if name != "before it is said" {
				ctx, cancel := context.WithCancel(background)
				if name == "before they go" {
					cancel()
				}
				e.index.Apply(e.index.State(), []index.Entry{packedEntry(last)})
				e.setPacks(last, e.index.State().Number, nil)
				err := e.index.Drop(ctx, packedTables, func(key, value []byte) bool {
					if key[0] == keys.TableCommit {
						cancel()
					}
					return inPacks(key, value, last)
				})
				require.ErrorIs(t, err, context.Canceled)
				cancel()
			}
			requireTalk(t, e, 300)
			requireSound(t, e)
			require.NoError(t, e.Close())
			e, err = Open(background, dir, Options{Durability: backend.Normal})
			require.NoError(t, err)
			defer e.Close()
			requireTalk(t, e, 300)
			requireSound(t, e)
			_, err = e.Apply(background, message(301), backend.Options{})
			require.NoError(t, err)
			_, err = e.Pack(background, backend.PackOptions{All: true})
			require.NoError(t, err)
			requireTalk(t, e, 301)
			requireSound(t, e)
			require.Zero(t, entriesOf(t, e)[keys.TableBlock])
		})
	}
}

// A leftover entry that disagrees with the packs is found.
func TestWrongEntryAbovePacks(t *testing.T) {
	e := openPacked(t, t.TempDir(), 100)
	defer e.Close()
	k := keys.Block(content.Sum([]byte("message 3 of a conversation that goes on and on")))
	was, ok, err := e.index.Get(k)
	require.NoError(t, err)
	require.True(t, ok)
	_, err = e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	findings := func() (n int) {
		for f, err := range e.Verify(background, backend.VerifyOptions{Deep: true}) {
			require.NoError(t, err)
			require.Equal(t, "index", f.Subject)
			n++
		}
		return n
	}
	e.index.Apply(e.index.State(), []index.Entry{{Key: k, Value: was}})
	require.Zero(t, findings())
	p, err := keys.ReadLocation(was)
	require.NoError(t, err)
	p.Record++
	e.index.Apply(e.index.State(), []index.Entry{{Key: k, Value: p.Append(nil)}})
	require.Equal(t, 1, findings())
}

// Damage to the lookup tables of a pack is reported with its file, found by
// verification, and bypassed by rebuilding the index; packing repairs the pack.
//
//test:norace
func TestDamagedLookupTables(t *testing.T) {
	dir := t.TempDir()
	name, whole := onePack(t, dir, 300)
	foot := whole[len(whole)-40:]
	whole[len(whole)-81] ^= 1 // nothing can be restored
	end := len(whole) - 84 - int(binary.LittleEndian.Uint32(foot[20:]))
	begin := int(binary.LittleEndian.Uint64(foot)) + int(binary.LittleEndian.Uint32(foot[8:]))
	kept, err := os.ReadFile(filepath.Join(dir, indexFile))
	require.NoError(t, err)
	for at := begin; at < end; at += 1 + (end-begin)/7 {
		b := bytes.Clone(whole)
		b[at] ^= 4
		require.NoError(t, os.WriteFile(name, b, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, indexFile), kept, 0o600))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, indexFile+".sums")))
		e, err := Open(background, dir, Options{Durability: backend.Normal})
		require.NoError(t, err)
		for _, deep := range []bool{false, true} {
			found := 0
			for f, err := range e.Verify(background, backend.VerifyOptions{Deep: deep}) {
				require.NoError(t, err)
				require.Equal(t, name, f.File)
				if f.Subject == "index" {
					require.Equal(t, backend.RebuildIndex, f.Repair)
					found++
				}
			}
			require.Equal(t, 1, found)
		}
		failed := 0
		for i := range 300 {
			id := content.Sum(fmt.Appendf(nil, "message %d of a conversation that goes on and on", i+1))
			if _, err := e.Blocks(background, []content.ID{id}); err != nil {
				require.ErrorIs(t, err, backend.ErrCorrupt)
				require.ErrorContains(t, err, name)
				failed++
			}
		}
		if _, err := e.Digest(background, structure.SpanRef{Run: structure.DeriveID[structure.RunID]("run"), Seq: 5}); err != nil {
			require.ErrorIs(t, err, backend.ErrCorrupt)
			failed++
		}
		require.NotZero(t, failed)
		require.NoError(t, e.Close())

		require.NoError(t, os.Remove(filepath.Join(dir, indexFile)))
		var texts []string
		e, err = Open(background, dir, Options{Durability: backend.Normal, Logger: logline.New(slog.LevelDebug, func(s string) { texts = append(texts, s) })})
		require.NoError(t, err)
		require.NotEmpty(t, texts)
		requireTalk(t, e, 300)
		for _, f := range findings(t, e, true) {
			require.Equal(t, "journal", f.Subject) // of the parity
		}
		require.Equal(t, 300, entriesOf(t, e)[keys.TableBlock])
		_, err = e.Pack(background, backend.PackOptions{})
		require.NoError(t, err)
		require.Zero(t, entriesOf(t, e)[keys.TableBlock])
		requireTalk(t, e, 300)
		requireSound(t, e)
		require.NoError(t, e.Close())
		again, err := filepath.Glob(filepath.Join(dir, journalDir, "*.pack"))
		require.NoError(t, err)
		require.Len(t, again, 1)
		require.NotEqual(t, name, again[0], "another generation")
		require.NoError(t, os.Remove(again[0]))
	}
}

// An index that relies on missing packs is rebuilt.
func TestIndexWithoutItsPacks(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 100)
	e.index.Apply(e.index.State(), []index.Entry{packedEntry(2)})
	require.NoError(t, e.Close())
	var texts []string
	e, err := Open(background, dir, Options{Logger: logline.New(slog.LevelDebug, func(s string) { texts = append(texts, s) })})
	require.NoError(t, err)
	defer e.Close()
	require.Contains(t, fmt.Sprint(texts), errPacks.Error())
	requireTalk(t, e, 100)
	requireSound(t, e)
}

// Content that was erased and stored again in packs counts from the last record, and
// its earlier usages are found.
func TestStoredAgainInPacks(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 3)
	id := content.Sum([]byte("message 2 of a conversation that goes on and on"))
	_, err := e.Apply(background, &structure.Commit{Records: []structure.Record{&structure.Deletion{Subject: structure.KindBlock, Content: id}}}, backend.Options{})
	require.NoError(t, err)
	block := message(2).Records[0]
	_, err = e.Apply(background, &structure.Commit{Records: []structure.Record{block}}, backend.Options{})
	require.NoError(t, err)
	usages := func() (used []structure.UsageID) {
		for u, err := range e.Where(background, id) {
			require.NoError(t, err)
			used = append(used, u)
		}
		return used
	}
	want := usages()
	require.Len(t, want, 1)
	for _, all := range []bool{true, false} {
		_, err = e.Pack(background, backend.PackOptions{All: all})
		require.NoError(t, err)
		require.Equal(t, want, usages())
		requireSound(t, e)
		require.NoError(t, e.Close())
		require.NoError(t, os.Remove(filepath.Join(dir, indexFile)))
		e, err = Open(background, dir, Options{})
		require.NoError(t, err)
		require.Equal(t, want, usages())
		requireSound(t, e)
	}
	require.NoError(t, e.Close())
}

// A small dense archive needs no lookup tables until it grows.
//
//test:norace
func TestUnlistedUntilItGrows(t *testing.T) {
	campaign.Long(t)
	dir := t.TempDir()
	e := openPacked(t, dir, 50)
	_, err := e.Pack(background, backend.PackOptions{All: true, Dense: true})
	require.NoError(t, err)
	files := e.journal.FileSet()
	_, err = files.Findable(0)
	files.Release()
	require.ErrorIs(t, err, journal.ErrUnlisted)
	require.Equal(t, 50, entriesOf(t, e)[keys.TableBlock])
	requireTalk(t, e, 50)
	requireSound(t, e)
	require.NoError(t, e.Close())
	e, err = Open(background, dir, Options{SegmentSize: 64 << 10, Durability: backend.Normal, NoPacking: true})
	require.NoError(t, err)
	defer e.Close()
	requireTalk(t, e, 50)
	n := uint64(50)
	for n < spareSpans {
		n++
		_, err := e.Apply(background, message(n), backend.Options{})
		require.NoError(t, err)
	}
	_, err = e.Pack(background, backend.PackOptions{})
	require.NoError(t, err)
	got := entriesOf(t, e)
	require.Less(t, got[keys.TableBlock], 2000, "of the last segment only")
	requireTalk(t, e, n)
	requireSound(t, e)
}

// Content collected from packs is found nowhere and can be stored again; live content
// is found as before.
//
//test:norace
func TestCollectFromPacks(t *testing.T) {
	dir := t.TempDir()
	e := openPacked(t, dir, 200)
	_, err := e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	require.Zero(t, entriesOf(t, e)[keys.TableBlock])
	was, err := e.Snapshot(background)
	require.NoError(t, err)
	gone := &structure.Commit{}
	for i := 101; i <= 200; i++ {
		gone.Records = append(gone.Records, &structure.Deletion{Subject: structure.KindContext, Context: structure.DeriveID[structure.ContextID](fmt.Sprint(i))})
	}
	_, err = e.Apply(background, gone, backend.Options{})
	require.NoError(t, err)
	report, err := e.Collect(background, backend.CollectOptions{KeepReflog: -1, KeepUnused: -1})
	require.NoError(t, err)
	require.EqualValues(t, 100, report.Spans)
	requireTalk(t, was, 200)
	require.NoError(t, was.Close())
	dead := message(150).Records[0].(*structure.Block)
	for range 3 {
		requireTalk(t, e, 100)
		has, err := e.Has(background, []content.ID{dead.ID})
		require.NoError(t, err)
		require.Equal(t, []bool{false}, has)
		requireSound(t, e)
		require.NoError(t, e.Close())
		e, err = Open(background, dir, Options{Durability: backend.Normal})
		require.NoError(t, err)
	}
	receipt, err := e.Apply(background, &structure.Commit{Records: []structure.Record{dead}}, backend.Options{})
	require.NoError(t, err)
	require.Empty(t, receipt.Known)
	blocks, err := e.Blocks(background, []content.ID{dead.ID})
	require.NoError(t, err)
	require.Equal(t, dead.Body, blocks[0].Body)
	requireSound(t, e)
	require.NoError(t, e.Close())
}

// The place of a span is read from a pack that another one replaces meanwhile.
func TestSpansOfReplacedPacks(t *testing.T) {
	e := openPacked(t, t.TempDir(), 600)
	defer e.Close()
	_, err := e.Pack(background, backend.PackOptions{All: true})
	require.NoError(t, err)
	run := structure.DeriveID[structure.RunID]("run")
	done := make(chan struct{})
	var wg sync.WaitGroup
	for n := range 4 {
		wg.Go(func() {
			for i := uint64(n); ; i += 7 {
				select {
				case <-done:
					return
				default:
				}
				e.journal.DropCache() // so that it is read from the file
				ref := structure.SpanRef{Run: run, Seq: 1 + i%600}
				latest := e.latest()
				var err error
				if n%2 == 0 {
					_, _, err = e.get(keys.Span(ref), anyCommit)
				} else {
					_, _, _, err = latest.SpansAt(ref)
				}
				latest.Close()
				if err != nil {
					t.Errorf("span %d: %v", ref.Seq, err)
					return
				}
			}
		})
	}
	_, err = e.Pack(background, backend.PackOptions{All: true, Dense: true})
	close(done)
	wg.Wait()
	require.NoError(t, err)
}
