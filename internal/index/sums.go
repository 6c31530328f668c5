package index

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"

	"github.com/lineage-store/lineage/internal/vfs"
)

// While an index is closed, a file beside it has checksums of all its bytes,
// including unused ones. It is removed before the index is first written to, so
// that a crash leaves no outdated checksums. It is, integers little-endian:
//
//	0  magic "LINIDXCK"
//	8  size of the index, 8 bytes
//	16 for each 64 KiB of it: CRC-32C, 4 bytes
//	   CRC-32C of everything before, 4 bytes
const (
	sumsSuffix = ".sums"
	sumsMagic  = "LINIDXCK"
	sumsBlock  = 64 << 10
	sumsHeader = 16
	maxSums    = 64 << 20 // of an index of a terabyte
)

// Damage is a damaged range of the file.
type Damage struct{ Offset, Length int64 }

// computeSums reads at most so many bytes of the index and calls fn with the checksum of each block.
func computeSums(path string, most int64, fn func(offset int64, n int, sum uint32) error) error {
	f, err := vfs.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	from, buf := io.LimitReader(f, most), make([]byte, sumsBlock)
	for offset := int64(0); ; {
		n, err := io.ReadFull(from, buf)
		if n > 0 {
			if err := fn(offset, n, crc32.Checksum(buf[:n], castagnoli)); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		offset += int64(n)
	}
}

// held is Options.Held.
func (db *DB) held() error {
	if db.opt.Held == nil {
		return nil
	}
	return db.opt.Held()
}

// writeSums is called after the index is closed. The checksums are optional:
// they are not synced, and torn ones are not used.
func (db *DB) writeSums() error {
	if err := db.held(); err != nil {
		return err
	}
	return writeSums(db.path)
}

func writeSums(path string) error {
	size, err := vfs.Size(path)
	if err != nil {
		return err
	}
	b := binary.LittleEndian.AppendUint64([]byte(sumsMagic), uint64(size))
	err = computeSums(path, size, func(_ int64, _ int, sum uint32) error {
		b = binary.LittleEndian.AppendUint32(b, sum)
		return nil
	})
	if err != nil {
		return err
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	if err := os.Remove(path + sumsSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := vfs.OpenFile(path+sumsSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// removeSums must return before the index is written to.
func (db *DB) removeSums() error {
	if err := db.held(); err != nil {
		return err
	}
	return removeSums(db.path)
}

func removeSums(path string) error {
	err := os.Remove(path + sumsSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return vfs.OS().SyncDir(filepath.Dir(path))
}

// readSums returns the checksums of the index and its size, or nil if there are
// no valid ones.
func readSums(path string) (sums []byte, size int64, err error) {
	b, err := vfs.ReadFile(path+sumsSuffix, maxSums)
	if errors.Is(err, os.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	end := len(b) - 4
	if end < sumsHeader || string(b[:8]) != sumsMagic || crc32.Checksum(b[:end], castagnoli) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, 0, nil
	}
	size = int64(binary.LittleEndian.Uint64(b[8:]))
	sums = b[sumsHeader:end]
	if size < 0 || len(sums)%4 != 0 || int64(len(sums)/4) != size/sumsBlock+min(size%sumsBlock, 1) {
		return nil, 0, nil
	}
	return sums, size, nil
}

// CheckSums yields the ranges that differ from the file as it was last closed.
// After a checkpoint there is nothing to compare.
func (db *DB) CheckSums() iter.Seq2[Damage, error] {
	return func(yield func(Damage, error) bool) {
		db.mu.RLock()
		written := db.written || db.opt.InMemory
		db.mu.RUnlock()
		if written {
			return
		}
		sums, size, err := readSums(db.path)
		if err != nil || sums == nil {
			if err != nil {
				yield(Damage{}, fmt.Errorf("check index: %w", err))
			}
			return
		}
		stop := errors.New("stop")
		most := int64(math.MaxInt64)
		if db.system.grow {
			most = size
		}
		err = computeSums(db.path, most, func(offset int64, n int, sum uint32) error {
			at := offset / sumsBlock * 4
			if offset+int64(n) <= size && at < int64(len(sums)) && binary.LittleEndian.Uint32(sums[at:]) == sum {
				return nil
			}
			if !yield(Damage{Offset: offset, Length: int64(n)}, nil) {
				return stop
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			yield(Damage{}, fmt.Errorf("check index: %w", err))
		}
	}
}

// Remove removes a closed index and its checksums.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove index: %w", err)
	}
	return removeSums(path)
}
