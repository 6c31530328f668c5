package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/lineage-store/lineage/internal/zframe"
	"github.com/lineage-store/lineage/lineage/backend"
)

const (
	magic       = "LINEAGEB"
	version     = 1
	headerSize  = 20
	frameHeader = 13

	// frameSize is the size of pending entries at which a frame is written.
	frameSize = 1 << 20
	// maxEntry limits the size of an entry, and so the memory for reading one.
	maxEntry = 16 << 20
	maxFrame = frameSize + maxEntry
	// maxRecords limits the records of an entry and their usages, which take more memory than their bytes. Honest ones have
	// ids and texts, and reach maxEntry first.
	maxRecords = 3 << 17
	// maxDensity limits the number of entries per 64 stored bytes. It is checked from densityFrom entries on. Entries
	// have ids, which do not compress, so honest bundles stay far below it.
	maxDensity  = 16
	densityFrom = 50_000
)

// Is reports whether a file that begins with these bytes is a bundle.
func Is(begin []byte) bool { return bytes.HasPrefix(begin, []byte(magic)) }

// Kinds of frames.
const (
	framePlain = 1 // entries
	frameZstd  = 2 // entries, compressed
	frameEnd   = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writer writes frames.
type writer struct {
	w       io.Writer
	sum     hash.Hash
	zstd    *zstd.Encoder
	buf     []byte // entries of the next frame
	packed  []byte
	entries uint64
	written int64
}

func newWriter(w io.Writer) (*writer, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, err
	}
	out := &writer{w: w, sum: sha256.New(), zstd: enc}
	h := binary.LittleEndian.AppendUint32([]byte(magic), version)
	h = binary.LittleEndian.AppendUint32(h, 0)
	h = binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli))
	return out, out.raw(h)
}

func (w *writer) raw(b []byte) error {
	w.sum.Write(b)
	n, err := w.w.Write(b)
	w.written += int64(n)
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}

// entry appends an entry.
func (w *writer) entry(tag byte, b []byte) error {
	if len(b) > maxEntry {
		return fmt.Errorf("bundle: an entry of %d bytes, at most %d: %w", len(b), maxEntry, backend.ErrTooLarge)
	}
	w.buf = append(w.buf, tag)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(b)))
	w.buf = append(w.buf, b...)
	w.entries++
	if len(w.buf) >= frameSize {
		return w.flush()
	}
	return nil
}

func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	kind, stored := byte(framePlain), w.buf
	if w.packed = w.zstd.EncodeAll(w.buf, w.packed[:0]); len(w.packed) < len(w.buf) {
		kind, stored = frameZstd, w.packed
	}
	err := w.frame(kind, stored, len(w.buf))
	w.buf = w.buf[:0]
	return err
}

func (w *writer) frame(kind byte, stored []byte, size int) error {
	h := binary.LittleEndian.AppendUint32([]byte{kind}, uint32(len(stored)))
	h = binary.LittleEndian.AppendUint32(h, uint32(size))
	h = binary.LittleEndian.AppendUint32(h, crc32.Update(crc32.Checksum(h, castagnoli), castagnoli, stored))
	if err := w.raw(h); err != nil {
		return err
	}
	return w.raw(stored)
}

// end writes the remaining entries and the end mark.
func (w *writer) end() error {
	if err := w.flush(); err != nil {
		return err
	}
	end := w.sum.Sum(binary.LittleEndian.AppendUint64(nil, w.entries))
	return w.frame(frameEnd, end, len(end))
}

func (w *writer) close() { _ = w.zstd.Close() }

// reader reads frames, checks them and returns their entries.
type reader struct {
	r       io.Reader
	sum     hash.Hash
	zstd    *zstd.Decoder
	stored  []byte
	rest    []byte // unread entries of the current frame
	offset  int64  // of the next frame
	at      int64  // of the frame that rest belongs to
	entries uint64
	done    bool
}

func newReader(r io.Reader) (*reader, error) {
	in := &reader{r: r, sum: sha256.New(), zstd: zframe.NewDecoder(maxFrame, zstd.WithDecoderConcurrency(1))}
	if err := in.header(); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (r *reader) close() { r.zstd.Close() }

func (r *reader) header() error {
	var h [headerSize]byte
	if err := r.read(h[:], "header"); err != nil {
		return err
	}
	if !Is(h[:]) {
		return corrupt(0, "this is not a bundle")
	}
	if v := binary.LittleEndian.Uint32(h[8:]); v > version {
		return fmt.Errorf("bundle format %d, this program reads up to %d: %w", v, version, backend.ErrNewerFormat)
	}
	if binary.LittleEndian.Uint32(h[16:]) != crc32.Checksum(h[:16], castagnoli) || binary.LittleEndian.Uint32(h[8:]) != version || binary.LittleEndian.Uint32(h[12:]) != 0 {
		return corrupt(0, "header is damaged")
	}
	return nil
}

func (r *reader) read(b []byte, what string) error {
	n, err := io.ReadFull(r.r, b)
	r.offset += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt(r.offset, "cut short in a %s", what)
	}
	if err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	r.sum.Write(b)
	return nil
}

func (r *reader) corrupt(format string, args ...any) error { return corrupt(r.at, format, args...) }

// next returns the next entry. It returns io.EOF after the last one, if the end mark proves that the bundle is
// complete.
func (r *reader) next() (tag byte, b []byte, err error) {
	for len(r.rest) == 0 {
		if r.done {
			return 0, nil, io.EOF
		}
		if err := r.frame(); err != nil {
			return 0, nil, err
		}
	}
	tag = r.rest[0]
	n, w := binary.Uvarint(r.rest[1:])
	if w <= 0 || n > uint64(len(r.rest)-1-w) || n > maxEntry {
		return 0, nil, r.corrupt("an entry is longer than its frame")
	}
	b, r.rest = r.rest[1+w:][:n:n], r.rest[1+w+int(n):]
	if r.entries++; r.entries > densityFrom && r.entries/maxDensity > uint64(r.offset)/64 {
		return 0, nil, fmt.Errorf("bundle: more than %d entries for each 64 bytes: %w", maxDensity, backend.ErrTooLarge)
	}
	return tag, b, nil
}

func (r *reader) frame() error {
	r.at = r.offset
	before := r.sum.Sum(nil)
	var h [frameHeader]byte
	if err := r.read(h[:], "frame"); err != nil {
		return err
	}
	kind, stored, size := h[0], binary.LittleEndian.Uint32(h[1:]), binary.LittleEndian.Uint32(h[5:])
	if kind < framePlain || kind > frameEnd || stored > size || size > maxFrame || kind != frameZstd && stored != size {
		return r.corrupt("impossible frame")
	}
	if cap(r.stored) < int(stored) {
		r.stored = make([]byte, stored)
	}
	r.stored = r.stored[:stored]
	if err := r.read(r.stored, "frame"); err != nil {
		return err
	}
	if crc32.Update(crc32.Checksum(h[:9], castagnoli), castagnoli, r.stored) != binary.LittleEndian.Uint32(h[9:]) {
		return r.corrupt("checksum does not match")
	}
	switch kind {
	case frameEnd:
		return r.end(before)
	case frameZstd:
		// Decoded records share memory with their frame, so each frame has its own.
		b, err := zframe.Expand(r.zstd, r.stored, int(size))
		if err != nil {
			return r.corrupt("%v", err)
		}
		r.rest = b
	default:
		r.rest = append([]byte(nil), r.stored...)
	}
	if len(r.rest) == 0 {
		return r.corrupt("a frame without entries")
	}
	return nil
}

func (r *reader) end(sum []byte) error {
	if len(r.stored) != 8+sha256.Size || string(r.stored[8:]) != string(sum) {
		return r.corrupt("the checksum of the bundle does not match")
	}
	if n := binary.LittleEndian.Uint64(r.stored); n != r.entries {
		return r.corrupt("%d entries of %d", r.entries, n)
	}
	var more [1]byte
	switch _, err := io.ReadFull(r.r, more[:]); err {
	case io.EOF:
		r.done = true
		return nil
	case nil:
		return corrupt(r.offset, "there are bytes after the end")
	default:
		return fmt.Errorf("read bundle: %w", err)
	}
}
