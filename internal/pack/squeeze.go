package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// How bytes are compressed.
const (
	methodNone   = iota
	methodZstd   // fast to write and to read
	methodBrotli // small
)

// mostPart bounds the size that one compressed part may expand to.
const mostPart = 1 << 30

// stopSlice is how many bytes are compressed or expanded between two questions whether
// to stop.
const stopSlice = 4 << 10

// inflated reports whether a part claims to expand to so much that it is not
// believed: beyond a mebibyte, to more than 4,096 times its size.
func inflated(size int64, packed int) bool { return size > 1<<20 && size>>12 > int64(packed) }

// codec compresses and expands parts. One that only expands is safe for concurrent use.
type codec struct {
	dense bool
	dict  []byte       // that zstd may refer to
	stop  func() error // asked while bytes are compressed or expanded; may be nil

	encoder *zstd.Encoder
	mu      sync.Mutex
	decoder *zstd.Decoder
}

func (d *codec) close() {
	if d.encoder != nil {
		d.encoder.Close()
	}
	if d.decoder != nil {
		d.decoder.Close()
	}
}

// squeeze returns bytes compressed, behind the method; nothing for nothing.
func (d *codec) squeeze(raw []byte) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if d.dense {
		b, err := d.brotli(raw)
		return believable(b, raw), err
	}
	if d.encoder == nil {
		o := []zstd.EOption{
			zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(8 << 20), zstd.WithSingleSegment(true),
		}
		if len(d.dict) > 0 {
			o = append(o, zstd.WithEncoderDictRaw(1, d.dict))
		}
		var err error
		if d.encoder, err = zstd.NewWriter(nil, o...); err != nil {
			return nil, err
		}
	}
	return believable(d.encoder.EncodeAll(raw, []byte{methodZstd}), raw), nil
}

// brotli compresses with the smallest window that holds everything, for the encoder takes
// about ten times as much memory as its window.
func (d *codec) brotli(raw []byte) ([]byte, error) {
	const least, most = 16, 24
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

func (d *codec) stopped() error {
	if d.stop == nil {
		return nil
	}
	return d.stop()
}

// believable returns compressed bytes if they are less and a reader takes them.
func believable(out, raw []byte) []byte {
	if len(out) > len(raw) || inflated(int64(len(raw)), len(out)) {
		return append([]byte{methodNone}, raw...)
	}
	return out
}

// expand returns what was squeezed, which has a size.
func (d *codec) expand(b []byte, size int64) ([]byte, error) {
	if size == 0 && len(b) == 0 {
		return nil, nil
	}
	if len(b) == 0 || size < 0 || size > mostPart || inflated(size, len(b)) {
		return nil, errForm
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
		err = fmt.Errorf("method %d: %w", b[0], errForm)
	}
	if err == nil && int64(len(out)) != size {
		err = errForm
	}
	return out, err
}

// expandBrotli takes as much memory as it returns, and the window of at most 16 MiB.
func (d *codec) expandBrotli(b []byte, size int64) ([]byte, error) {
	r := brotli.NewReader(bytes.NewReader(b))
	out := make([]byte, size)
	for left := out; len(left) > 0; {
		if err := d.stopped(); err != nil {
			return nil, err
		}
		n, err := io.ReadFull(r, left[:min(len(left), stopSlice)])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errForm, err)
		}
		left = left[n:]
	}
	if n, err := io.ReadFull(r, make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return nil, errForm
	}
	return out, nil
}

func (d *codec) expandZstd(b []byte, size int64) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return nil, err
	}
	if !h.HasFCS || h.FrameContentSize != uint64(size) {
		return nil, errForm
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.decoder == nil {
		o := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostPart + 1<<20), zstd.IgnoreChecksum(true)}
		if len(d.dict) > 0 {
			o = append(o, zstd.WithDecoderDictRaw(1, d.dict))
		}
		var err error
		if d.decoder, err = zstd.NewReader(nil, o...); err != nil {
			return nil, err
		}
	}
	return d.decoder.DecodeAll(b, make([]byte, 0, size))
}
