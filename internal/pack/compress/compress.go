// Package compress compresses the parts of packs: fast with zstd, whose dictionary is the first chapter, or small with
// brotli.
package compress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/lineage-store/lineage/internal/pack/layout"
	"github.com/lineage-store/lineage/internal/zframe"
)

// Compression methods.
const (
	methodNone   = iota
	methodZstd   // fast
	methodBrotli // small
)

// stopSlice is the number of bytes that are compressed or decompressed between two calls
// of stop.
const stopSlice = 4 << 10

// inflated reports whether the claimed decompressed size of a part is implausible: above
// one mebibyte, and more than 4,096 times the compressed size.
func inflated(size int64, packed int) bool { return size > 1<<20 && size>>12 > int64(packed) }

// Codec compresses and decompresses parts. It is safe for concurrent decompression.
type Codec struct {
	Dense bool
	Quick bool         // zstd takes less time, and saves a little less
	Dict  []byte       // dictionary of zstd
	Stop  func() error // called during compression and decompression; may be nil

	encoder *zstd.Encoder
	mu      sync.Mutex
	decoder *zstd.Decoder
}

// Close releases memory. It may be called twice.
func (d *Codec) Close() {
	if d.encoder != nil {
		d.encoder.Close()
	}
	if d.decoder != nil {
		d.decoder.Close()
	}
}

// UseDictionary makes what is compressed from now on refer to a dictionary.
func (d *Codec) UseDictionary(dict []byte) {
	d.Close()
	d.encoder, d.decoder, d.Dict = nil, nil, dict
}

// Squeeze returns the method and the compressed bytes; nothing for no bytes.
func (d *Codec) Squeeze(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if d.Dense {
		b, err := d.brotli(raw)
		return believable(b, raw), err
	}
	if d.encoder == nil {
		level := zstd.SpeedBetterCompression
		if d.Quick {
			level = zstd.SpeedDefault
		}
		o := []zstd.EOption{
			zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(8 << 20), zstd.WithSingleSegment(true),
		}
		if len(d.Dict) > 0 {
			o = append(o, zstd.WithEncoderDictRaw(1, d.Dict))
		}
		var err error
		if d.encoder, err = zstd.NewWriter(nil, o...); err != nil {
			return nil, err
		}
	}
	return believable(d.encoder.EncodeAll(raw, []byte{methodZstd}), raw), nil
}

// brotli compresses with the smallest window that covers everything, because the encoder
// needs about ten times its window in memory.
func (d *Codec) brotli(raw []byte) ([]byte, error) {
	const least, most = 16, 23
	var out bytes.Buffer
	out.WriteByte(methodBrotli)
	w := brotli.NewWriterOptions(&out, brotli.WriterOptions{
		Quality: brotli.BestCompression, LGWin: min(max(bits.Len(uint(len(raw)+16)), least), most),
	})
	for len(raw) > 0 {
		if err := d.stopped(); err != nil {
			return nil, err
		}
		n := min(len(raw), stopSlice)
		if _, err := w.Write(raw[:n]); err != nil {
			return nil, err
		}
		raw = raw[n:]
	}
	err := w.Close()
	return out.Bytes(), err
}

func (d *Codec) stopped() error {
	if d.Stop == nil {
		return nil
	}
	return d.Stop()
}

// believable returns the compressed bytes if they are smaller and plausible for a reader,
// and otherwise the raw ones.
func believable(out, raw []byte) []byte {
	if len(out) > len(raw) || inflated(int64(len(raw)), len(out)) {
		return append([]byte{methodNone}, raw...)
	}
	return out
}

// Expand decompresses bytes to a known size.
func (d *Codec) Expand(b []byte, size int64) ([]byte, error) {
	if size == 0 && len(b) == 0 {
		return nil, nil
	}
	if len(b) == 0 || size < 0 || size > layout.MaxPart || inflated(size, len(b)) {
		return nil, layout.ErrForm
	}
	var out []byte
	var err error
	switch b[0] {
	case methodNone:
		out = b[1:]
	case methodZstd:
		out, err = d.expandZstd(b[1:], size)
	case methodBrotli:
		out, err = d.expandBrotli(b[1:], size)
	default:
		err = fmt.Errorf("method %d: %w", b[0], layout.ErrForm)
	}
	if err == nil && int64(len(out)) != size {
		err = layout.ErrForm
	}
	return out, err
}

// expandBrotli uses as much memory as it returns, and a window of at most 16 MiB.
func (d *Codec) expandBrotli(b []byte, size int64) ([]byte, error) {
	r := brotli.NewReader(bytes.NewReader(b))
	out := make([]byte, size)
	for left := out; len(left) > 0; {
		if err := d.stopped(); err != nil {
			return nil, err
		}
		n, err := io.ReadFull(r, left[:min(len(left), stopSlice)])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", layout.ErrForm, err)
		}
		left = left[n:]
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return nil, layout.ErrForm
	}
	return out, nil
}

// A frame is decompressed behind a copy of its dictionary, unless the dictionary is more than behindFrom times as large. For a
// smaller frame, copying the dictionary takes longer than it saves.
const behindFrom = 32

func (d *Codec) expandZstd(b []byte, size int64) ([]byte, error) {
	if len(d.Dict) > 0 && size >= int64(len(d.Dict)/behindFrom) {
		return zframe.ExpandBehind(d.Dict, b, int(size))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.decoder == nil {
		o := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.IgnoreChecksum(true)}
		if len(d.Dict) > 0 {
			o = append(o, zstd.WithDecoderDictRaw(1, d.Dict))
		}
		d.decoder = zframe.NewDecoder(layout.MaxPart+1<<20, o...)
	}
	return zframe.Expand(d.decoder, b, int(size))
}
