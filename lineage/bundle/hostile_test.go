package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lineage-store/lineage/content"
	"github.com/lineage-store/lineage/internal/storetest"
	"github.com/lineage-store/lineage/internal/write"
	"github.com/lineage-store/lineage/lineage"
	"github.com/lineage-store/lineage/lineage/backend"
	"github.com/lineage-store/lineage/structure"
	"github.com/lineage-store/lineage/structure/structuretest"
)

var bg = context.Background()

func requireSound(t testing.TB, s *lineage.Store) {
	t.Helper()
	for finding, err := range s.Verify(bg, lineage.VerifyOptions{Deep: true}) {
		require.NoError(t, err)
		require.FailNow(t, finding.String())
	}
}

func isTyped(err error) bool {
	for _, known := range []error{
		backend.ErrCorrupt, backend.ErrNewerFormat, backend.ErrOlderFormat, backend.ErrNotFound, backend.ErrExists, backend.ErrConflict, backend.ErrInvalid, backend.ErrErased, backend.ErrTooLarge,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func goldenBundle(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "store.bundle"))
	require.NoError(t, err)
	return b
}

// TestDamage imports bundles that are cut short anywhere, or have any bit flipped. Nothing of them
// is applied.
func TestDamage(t *testing.T) {
	whole, s := goldenBundle(t), storetest.New(t)
	try := func(b []byte, what string, at int) {
		_, err := Import(bg, s, bytes.NewReader(b), ImportOptions{})
		require.True(t, errors.Is(err, backend.ErrCorrupt) || errors.Is(err, backend.ErrNewerFormat), "%s at %d: %v", what, at, err)
		n, err := s.View().Head(bg)
		require.NoError(t, err)
		require.Zero(t, n, "%s at %d was applied in part", what, at)
	}
	for n := range whole {
		try(whole[:n], "cut", n)
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		try(b, "flipped", i)
	}
	try(append(bytes.Clone(whole), 0), "longer", len(whole))
	try(append(bytes.Clone(whole), whole...), "twice", len(whole))
}

func TestNewerFormat(t *testing.T) {
	b := goldenBundle(t)
	binary.LittleEndian.PutUint32(b[8:], version+1)
	_, err := Import(bg, storetest.New(t), bytes.NewReader(b), ImportOptions{})
	require.ErrorIs(t, err, backend.ErrNewerFormat)
}

// failingReader fails at the end.
type failingReader struct{ r io.Reader }

var errRead = errors.New("no more")

func (f failingReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == io.EOF {
		err = errRead
	}
	return n, err
}

func TestReaderFails(t *testing.T) {
	b, s := goldenBundle(t), storetest.New(t)
	_, err := Import(bg, s, failingReader{bytes.NewReader(b[:len(b)/2])}, ImportOptions{})
	require.ErrorIs(t, err, errRead)
	n, err := s.View().Head(bg)
	require.NoError(t, err)
	require.Zero(t, n)
}

type failingWriter struct{ left int }

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errRead
	}
	return len(p), nil
}

func TestWriterFails(t *testing.T) {
	s, b := storetest.New(t), goldenBundle(t)
	_, err := Import(bg, s, bytes.NewReader(b), ImportOptions{})
	require.NoError(t, err)
	for n := 0; n < len(b); n += 97 {
		_, err := Write(bg, s, &failingWriter{left: n}, WriteOptions{})
		require.ErrorIs(t, err, errRead)
	}
}

// crafted is a well-formed bundle with any entries.
type crafted struct {
	t   *testing.T
	b   bytes.Buffer
	out *writer
	enc structure.Encoder
}

func craft(t *testing.T) *crafted {
	c := &crafted{t: t}
	var err error
	c.out, err = newWriter(&c.b)
	require.NoError(t, err)
	return c
}

func (c *crafted) commit(tag byte, records ...structure.Record) *crafted {
	b, _, err := c.enc.Encode(&structure.Commit{Time: time.UnixMilli(1), Records: records})
	require.NoError(c.t, err)
	require.NoError(c.t, c.out.entry(tag, b))
	return c
}

func (c *crafted) piece(p runPiece) *crafted {
	b, err := p.encode()
	require.NoError(c.t, err)
	require.NoError(c.t, c.out.entry(entryRun, b))
	return c
}

func (c *crafted) end() []byte {
	require.NoError(c.t, c.out.end())
	c.out.close()
	return c.b.Bytes()
}

func TestContradictions(t *testing.T) {
	run, other := structure.NewID[structure.RunID](), structure.NewID[structure.RunID]()
	thread, view := structure.NewID[structure.ThreadID](), structure.NewID[structure.ContextID]()
	says := structure.NewBlock(content.TypeText, content.BlockOrigin{}, time.UnixMilli(1), []byte("said"))
	usages := []structure.Usage{{Kind: structure.MessageUsage, Role: "user", Content: says.ID, CreatedAt: time.UnixMilli(1)}}
	digest := structure.NextDigest(structure.Digest{}, usages)
	ref := func(r structure.RunID, seq uint64) structure.SpanRef { return structure.SpanRef{Run: r, Seq: seq} }
	span := func(r structure.RunID, seq uint64) *structure.Span {
		return &structure.Span{Ref: ref(r, seq), Usages: usages}
	}
	one := runPiece{run: structure.Run{ID: run}, last: 1, digest: digest}
	after := func(id structure.RunID, parent structure.SpanRef) runPiece {
		return runPiece{run: structure.Run{ID: id, Parent: parent}, base: digest, before: digest, last: 1, digest: structure.NextDigest(digest, usages)}
	}
	th := &structure.Thread{ID: thread, CreatedAt: time.UnixMilli(1), UpdatedAt: time.UnixMilli(1)}
	with := func(c *structure.Context) *structure.Context {
		c.ID, c.Thread, c.CreatedAt = view, thread, time.UnixMilli(1)
		return c
	}
	inStore := structure.ValueKey{Owner: structure.Owner{Scope: structure.StoreScope}, Key: "k"}
	cases := map[string]func(c *crafted){
		"span without a run":     func(c *crafted) { c.commit(entryHistory, says, span(run, 1)) },
		"span at another place":  func(c *crafted) { c.piece(one).commit(entryHistory, says, span(run, 2)) },
		"span twice":             func(c *crafted) { c.piece(one).commit(entryHistory, says, span(run, 1), span(run, 1)) },
		"spans that do not come": func(c *crafted) { c.piece(one) },
		"run twice":              func(c *crafted) { c.piece(one).piece(one).commit(entryHistory, says, span(run, 1)) },
		"wrong digest": func(c *crafted) {
			p := one
			p.digest[0] ^= 1
			c.piece(p).commit(entryHistory, says, span(run, 1))
		},
		"wrong digest before": func(c *crafted) {
			p := after(other, ref(run, 1))
			p.base[0] ^= 1
			p.before = p.base
			p.digest = structure.NextDigest(p.base, usages)
			c.piece(one).commit(entryHistory, says, span(run, 1)).piece(p).commit(entryHistory, span(other, 1))
		},
		"root with a digest": func(c *crafted) { c.piece(after(run, structure.SpanRef{})).commit(entryHistory, says, span(run, 1)) },
		"run after itself":   func(c *crafted) { c.piece(after(run, ref(run, 1))).commit(entryHistory, says, span(run, 1)) },
		"run after nothing":  func(c *crafted) { c.piece(after(other, ref(run, 1))).commit(entryHistory, says, span(other, 1)) },
		"cycle of runs": func(c *crafted) {
			c.piece(after(run, ref(other, 1))).piece(after(other, ref(run, 1))).commit(entryHistory, says, span(run, 1), span(other, 1))
		},
		"goes on after nothing": func(c *crafted) {
			p := after(run, structure.SpanRef{})
			p.base, p.from, p.last = structure.Digest{}, 1, 2
			c.piece(p).commit(entryHistory, says, span(run, 2))
		},
		"content of nowhere":   func(c *crafted) { c.piece(one).commit(entryHistory, span(run, 1)) },
		"tip into nothing":     func(c *crafted) { c.commit(entryFacts, th, with(&structure.Context{Tip: ref(run, 1)})) },
		"base into nothing":    func(c *crafted) { c.commit(entryFacts, th, with(&structure.Context{Base: ref(run, 1)})) },
		"context of no thread": func(c *crafted) { c.commit(entryFacts, with(&structure.Context{})) },
		"context twice":        func(c *crafted) { c.commit(entryFacts, th, with(&structure.Context{}), with(&structure.Context{})) },
		"its own parent":       func(c *crafted) { c.commit(entryFacts, th, with(&structure.Context{Parent: view})) },
		"set of nowhere": func(c *crafted) {
			c.commit(entryFacts, th, with(&structure.Context{Set: structure.NewID[structure.SpanSetID]()}))
		},
		"reflog of another": func(c *crafted) {
			c.commit(entryFacts, th, with(&structure.Context{}), &structure.Reflog{Context: structure.NewID[structure.ContextID]()})
		},
		"reflog of none": func(c *crafted) { c.commit(entryFacts, th, &structure.Reflog{}) },
		"reflog into nothing": func(c *crafted) {
			c.commit(entryFacts, th, with(&structure.Context{}), &structure.Reflog{Context: view, To: ref(run, 1)})
		},
		"summary of nothing": func(c *crafted) {
			c.commit(entryFacts, th, with(&structure.Context{}), &structure.Summary{ID: structure.NewID[structure.SummaryID](), Context: view, Content: says.ID, To: ref(run, 1)})
		},
		"active too early":    func(c *crafted) { a := *th; a.Active = view; c.commit(entryFacts, &a) },
		"span among facts":    func(c *crafted) { c.commit(entryFacts, th, span(run, 1)) },
		"thread in a history": func(c *crafted) { c.commit(entryHistory, th) },
		"deletion": func(c *crafted) {
			c.commit(entryHistory, &structure.Deletion{Subject: structure.KindThread, Thread: thread})
		},
		"value of a thread of nowhere": func(c *crafted) {
			c.commit(entryValues, &structure.Value{ValueKey: structure.ValueKey{Owner: structure.Owner{Scope: structure.ThreadScope, Thread: thread}, Key: "k"}})
		},
		"value of a context of nowhere": func(c *crafted) {
			c.commit(entryFacts, th).commit(entryValues, &structure.Value{ValueKey: structure.ValueKey{Owner: structure.Owner{Scope: structure.ContextScope, Context: view}, Key: "k"}})
		},
		"value that is no JSON": func(c *crafted) {
			c.commit(entryValues, &structure.Value{ValueKey: inStore, JSON: []byte("{")})
		},
		"value of content of nowhere": func(c *crafted) {
			c.commit(entryValues, &structure.Value{ValueKey: inStore, Content: content.Sum([]byte("nowhere"))})
		},
		"thread among values": func(c *crafted) { c.commit(entryValues, th) },
		"value among facts":   func(c *crafted) { c.commit(entryFacts, &structure.Value{ValueKey: inStore}) },
		"cut":                 func(c *crafted) { c.commit(entryHistory, &structure.Cut{Run: run}) },
		"names of no thread":  func(c *crafted) { c.commit(entryNames, &structure.Branch{Thread: thread, Name: "main", Context: view}) },
		"names of another thread": func(c *crafted) {
			c.commit(entryFacts, th).commit(entryNames, &structure.Branch{Thread: structure.NewID[structure.ThreadID](), Name: "main", Context: view}, th)
		},
		"thread of nowhere": func(c *crafted) { c.commit(entryNames, th) },
		"branch of nothing": func(c *crafted) {
			c.commit(entryFacts, th).commit(entryNames, &structure.Branch{Thread: thread, Name: "main", Context: view}, th)
		},
		"branch without a name": func(c *crafted) {
			c.commit(entryFacts, th, with(&structure.Context{})).commit(entryNames, &structure.Branch{Thread: thread, Context: view}, th)
		},
		"checkpoint of nothing": func(c *crafted) {
			c.commit(entryFacts, th).commit(entryNames, &structure.Checkpoint{ID: structure.NewID[structure.CheckpointID](), Thread: thread, Name: "x", Span: ref(run, 1)}, th)
		},
		"active of nowhere":       func(c *crafted) { a := *th; a.Active = view; c.commit(entryFacts, th).commit(entryNames, &a) },
		"left out without a word": func(c *crafted) { c.commit(entryLeft, says) },
		"left out":                func(c *crafted) { c.commit(entryLeft, description(&says.Block)) },
		"erased with its bytes":   func(c *crafted) { c.commit(entryErased, says) },
		"history without bytes":   func(c *crafted) { c.commit(entryHistory, description(&says.Block)) },
		"block among chunks":      func(c *crafted) { c.commit(entryChunks, says) },
		"unknown entry":           func(c *crafted) { c.commit(99, says) },
		"tree without chunks": func(c *crafted) {
			c.commit(entryHistory, &structure.Block{Block: content.Block{ID: says.ID, Size: 70000}, Tree: content.Root{Key: content.KeyOf([]byte("x")), Height: 1, Size: 70000}})
		},
		"chunk key of wrong size":    func(c *crafted) { require.NoError(t, c.out.entry(entryLeftKey, []byte{1, 2})) },
		"chunk that was left out":    func(c *crafted) { require.NoError(t, c.out.entry(entryLeftKey, make([]byte, 32))) },
		"malformed piece":            func(c *crafted) { require.NoError(t, c.out.entry(entryRun, []byte{5, 1})) },
		"malformed commit":           func(c *crafted) { require.NoError(t, c.out.entry(entryFacts, []byte{3, 0, 5})) },
		"empty commit":               func(c *crafted) { c.commit(entryFacts) },
		"commit of an older program": func(c *crafted) { require.NoError(t, c.out.entry(entryFacts, []byte{1, 0})) },
		"commit of a newer program":  func(c *crafted) { require.NoError(t, c.out.entry(entryFacts, []byte{99, 0})) },
		"someone else's large body": func(c *crafted) {
			chunk := bytes.Repeat([]byte("evil"), 1<<12)
			key := content.KeyOf(chunk)
			c.commit(entryBody, &structure.Block{Block: content.Block{ID: says.ID, Size: int64(len(chunk))}})
			c.commit(entryChunks, &structure.Chunk{Key: key, Bytes: chunk})
			c.commit(entryHistory, &structure.Block{Block: content.Block{ID: says.ID, Size: int64(len(chunk))}, Tree: content.Root{Key: key, Size: int64(len(chunk))}})
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // refused commits are repeated after a wait
			c, s := craft(t), storetest.New(t)
			make(c)
			_, err := Import(bg, s, bytes.NewReader(c.end()), ImportOptions{})
			require.Error(t, err)
			require.True(t, isTyped(err), err)
			requireSound(t, s)
			// The store still works.
			has, err := s.View().Has(bg, []content.ID{says.ID})
			require.NoError(t, err)
			if has[0] {
				blocks, err := s.View().Blocks(bg, []content.ID{says.ID})
				require.NoError(t, err)
				require.Equal(t, "said", string(blocks[0].Body))
			}
			_, err = Import(bg, s, bytes.NewReader(goldenBundle(t)), ImportOptions{})
			require.NoError(t, err)
			requireSound(t, s)
		})
	}
}

// TestImpossibleFrames reads frames with wrong headers.
func TestImpossibleFrames(t *testing.T) {
	frame := func(kind byte, stored []byte, size uint32) []byte {
		c := craft(t)
		require.NoError(t, c.out.frame(kind, stored, int(size)))
		return c.end()
	}
	zeros := craft(t).out.zstd.EncodeAll(make([]byte, 64<<20), nil)
	for i, b := range [][]byte{
		frame(frameZstd, zeros, 1<<20), frame(frameZstd, zeros, maxFrame), frame(frameZstd, zeros, maxFrame+1), frame(frameZstd, []byte("x"), 10),
		frame(framePlain, nil, 0), frame(framePlain, []byte{1, 200}, 2), frame(framePlain, []byte{1}, 2), frame(9, []byte{1}, 1), frame(frameEnd, []byte{1}, 1),
		frame(framePlain, binary.AppendUvarint([]byte{1}, 1<<62), 10),
	} {
		_, err := Import(bg, storetest.New(t), bytes.NewReader(b), ImportOptions{})
		require.ErrorIs(t, err, backend.ErrCorrupt, fmt.Sprint(i))
	}
}

func TestTooLarge(t *testing.T) {
	s := storetest.New(t)
	_, err := s.CreateThread(bg, lineage.ThreadOptions{Metadata: bytes.Repeat([]byte("1"), maxEntry)})
	require.NoError(t, err)
	_, err = Write(bg, s, io.Discard, WriteOptions{})
	require.ErrorIs(t, err, backend.ErrTooLarge)
}

// FuzzImport reads any bytes as a bundle.
func FuzzImport(f *testing.F) {
	for _, name := range []string{"store.bundle", "nothing-new.bundle"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := storetest.New(t)
		_, err := Import(bg, s, bytes.NewReader(b), ImportOptions{})
		require.True(t, err == nil || isTyped(err), err)
	})
}

// FuzzEntries reads any entries, in valid frames.
func FuzzEntries(f *testing.F) {
	for _, name := range []string{"store.bundle", "nothing-new.bundle"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(f, err)
		in, err := newReader(bytes.NewReader(b))
		require.NoError(f, err)
		var entries []byte
		for {
			tag, e, err := in.next()
			if err == io.EOF {
				break
			}
			require.NoError(f, err)
			entries = append(binary.AppendUvarint(append(entries, tag), uint64(len(e))), e...)
		}
		in.close()
		f.Add(entries)
	}
	empty := storetest.New(f)
	f.Fuzz(func(t *testing.T, entries []byte) {
		if len(entries) == 0 || len(entries) > maxFrame {
			return
		}
		var b bytes.Buffer
		out, err := newWriter(&b)
		require.NoError(t, err)
		defer out.close()
		require.NoError(t, out.frame(framePlain, entries, len(entries)))
		for rest := entries; len(rest) > 0; out.entries++ {
			n, w := binary.Uvarint(rest[1:])
			if w <= 0 || n > uint64(len(rest)-1-w) {
				break
			}
			rest = rest[1+w+int(n):]
		}
		require.NoError(t, out.end())
		if _, err := check(bg, bytes.NewReader(b.Bytes()), write.Of(empty).Engine()); err != nil {
			require.True(t, isTyped(err), err)
			return
		}
		s := storetest.New(t)
		_, err = Import(bg, s, bytes.NewReader(b.Bytes()), ImportOptions{})
		require.True(t, err == nil || isTyped(err), err)
		requireSound(t, s)
		if err == nil { // then it is there, and importing again changes nothing
			before, err := s.View().Head(bg)
			require.NoError(t, err)
			_, err = Import(bg, s, bytes.NewReader(b.Bytes()), ImportOptions{})
			require.NoError(t, err)
			after, err := s.View().Head(bg)
			require.NoError(t, err)
			require.Equal(t, before, after)
			_, err = Write(bg, s, io.Discard, WriteOptions{})
			require.NoError(t, err)
		}
	})
}

// An inventory with wrong counts and the right hash is refused with little memory.
func TestInflatedInventory(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "store.inventory"))
	require.NoError(t, err)
	whole := b[:len(b)-sha256.Size]
	for at := 8; at < len(whole); at++ {
		for b := range structuretest.Inflated(whole, at) {
			sum := sha256.Sum256(b)
			b = append(b, sum[:]...)
			allocated := structuretest.Allocated(func() {
				if _, err := NewInventory().ReadFrom(bytes.NewReader(b)); err != nil {
					require.True(t, isTyped(err), err)
				}
			})
			require.LessOrEqual(t, allocated, uint64(1<<20), "%x", b[:40])
		}
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// An inventory that does not end is refused, and read no further than the limit.
func TestEndlessInventory(t *testing.T) {
	defer func(was int) { maxInventory = was }(maxInventory)
	maxInventory = 1 << 16
	inv := NewInventory()
	n, err := inv.ReadFrom(io.MultiReader(strings.NewReader(inventoryMagic), endless{}))
	require.ErrorIs(t, err, lineage.ErrTooLarge)
	require.Equal(t, int64(maxInventory)+1, n)
}

// FuzzInventory reads any bytes as an inventory.
func FuzzInventory(f *testing.F) {
	b, err := os.ReadFile(filepath.Join("testdata", "store.inventory"))
	require.NoError(f, err)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		inv := NewInventory()
		if _, err := inv.ReadFrom(bytes.NewReader(b)); err != nil {
			require.True(t, isTyped(err), err)
			return
		}
		var again bytes.Buffer
		_, err := inv.WriteTo(&again)
		require.NoError(t, err)
		require.Equal(t, b[:again.Len()], again.Bytes())
	})
}
