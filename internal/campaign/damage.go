package campaign

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// A Damage is a changed byte of a file.
type Damage struct {
	File string // relative to the damaged directory, with slashes
	At   int64
	XOR  byte
	Seed uint64 // reproduces this damage and those before it
}

func (d Damage) String() string {
	return fmt.Sprintf("%s, byte %d ^ %#x, seed %d", d.File, d.At, d.XOR, d.Seed)
}

// Do damages the file in a directory. A second call restores it.
func (d Damage) Do(t testing.TB, dir string) {
	t.Helper()
	Flip(t, filepath.Join(dir, filepath.FromSlash(d.File)), d.At, d.XOR)
}

// Flip changes bits of a byte of a file.
func Flip(t testing.TB, path string, at int64, xor byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= xor
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// EachDamage calls use n times, each time with a new copy of a directory in
// which one byte differs. Small files are damaged as often as large ones, and
// the start of a file more often than the rest. The copies are removed.
func EachDamage(t *testing.T, dir string, n int, use func(copied string, d Damage)) {
	t.Helper()
	files := filesIn(t, dir)
	seed := rand.Uint64()
	choose := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		d := draw(choose, files[i%len(files)])
		d.Seed = seed
		func() {
			copied, err := os.MkdirTemp("", "damage-*")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(copied)
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			d.Do(t, copied)
			use(copied, d)
		}()
	}
}

// header is the likely size of a file's header.
const header = 256

func draw(choose *rand.Rand, f file) Damage {
	d := Damage{File: f.name, At: choose.Int64N(f.size), XOR: byte(1) << choose.IntN(8)}
	if choose.IntN(3) == 0 {
		d.At = choose.Int64N(min(f.size, header))
	}
	if choose.IntN(4) == 0 {
		d.XOR = byte(1 + choose.IntN(255))
	}
	return d
}

type file struct {
	name string
	size int64
}

// filesIn returns the files in a directory that are not empty.
func filesIn(t testing.TB, dir string) (files []file) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Size() > 0 {
			files = append(files, file{name, info.Size()})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no file to damage in %s", dir)
	}
	return files
}
