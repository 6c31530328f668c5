package follow

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/archive"
	"github.com/lineage-store/lineage/lineage/archive/importer"
	"github.com/lineage-store/lineage/lineage/lineagetest"
)

// Every session of the samples comes back byte for byte, whether it was read at once, or in pieces by readers that were
// closed and opened again.
func TestSamplesComeBack(t *testing.T) {
	const samples = "../archive/testdata"
	exact := 0
	require.NoError(t, filepath.WalkDir(samples, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".jsonl") {
			return err
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, inPieces := range []bool{false, true} {
			store := lineagetest.New(t, lineage.Options{})
			if !recordSample(t, store, path, raw, inPieces) {
				return nil
			}
			s, err := FindSource(bg, store, machine, path)
			require.NoError(t, err, path)
			var out bytes.Buffer
			require.NoError(t, s.Export(bg, &out), path)
			require.Equal(t, string(raw), out.String(), path)
		}
		exact++
		return nil
	}))
	require.Greater(t, exact, 10)
}

// recordSample reads a sample into a store, and reports whether its format can grow.
func recordSample(t *testing.T, store *lineage.Store, path string, raw []byte, inPieces bool) bool {
	random := rand.New(rand.NewPCG(1, 2))
	lines := bytes.SplitAfter(raw, []byte("\n"))
	var g *importer.Growing
	var rec *recorder
	for from := 0; from < len(lines); {
		to := len(lines)
		if inPieces {
			to = min(from+1+random.IntN(20), to)
		}
		part := bytes.Join(lines[from:to], nil)
		if g == nil {
			var known *Source
			sum := sha256.New()
			if s, err := FindSource(bg, store, machine, path); err == nil {
				known = s
				sum.Write(raw[:s.Recorded.Bytes])
			}
			rec = record(store, Machine{ID: machine}, SourceOf{Machine: machine, Path: path}, known, sum)
			g = importer.Grow(store, filepath.Base(path), importer.Options{Placed: func(lines []importer.Line) { rec.add(bg, g.Session(), lineage.ThreadID{}, lines) }})
			if known != nil {
				spans, err := known.Spans(bg)
				require.NoError(t, err)
				g.Known(known.Recorded.Lines, func(line int64) []lineage.SpanRef { return spans[line-1] })
				part = bytes.Join(lines[:to], nil)
			}
		}
		if _, err := g.Read(bg, bytes.NewReader(part)); err != nil {
			require.True(t, from == 0 && (errors.Is(err, archive.ErrCannotGrow) || errors.Is(err, archive.ErrUnknownFormat)), "%s: %v", path, err)
			g.Close()
			return false
		}
		if from = to; inPieces && random.IntN(3) == 0 || from == len(lines) {
			require.NoError(t, rec.flush(bg))
			if from == len(lines) && g.Session() == "" {
				g.Close()
				return false
			}
			g.Close()
			g = nil
		}
	}
	return true
}
