package pack

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// How bytes are compressed.
const (
	methodNone = iota
	methodZstd // fast to read
	methodLZ   // small
	methodMix  // smallest, and slow to read
)

// mostMixed bounds what is mixed, which takes about half a second for a mebibyte,
// to write and to read.
const mostMixed = 8 << 20

// mostGroup bounds what one compressed part may expand to.
const mostGroup = 1 << 30

// inflated reports whether a part claims to expand to so much that it is not
// believed: beyond a mebibyte, to more than 4,096 times its size.
func inflated(size int64, packed int) bool { return size > 1<<20 && size>>12 > int64(packed) }

// dictionary is what the bytes of later chapters may refer to, with what
// compresses and expands after it. One that is only read is safe for concurrent use.
type dictionary struct {
	bytes []byte
	model *lzModel // at the end of the bytes
	dense bool
	stop  func() error // asked now and then while bytes are compressed or expanded; may be nil

	writer  *lzWriter
	encoder *zstd.Encoder
	mu      sync.Mutex
	decoder *zstd.Decoder
}

func (d *dictionary) close() {
	if d.encoder != nil {
		d.encoder.Close()
	}
	if d.decoder != nil {
		d.decoder.Close()
	}
}

// begin returns the bytes compressed, which are the dictionary from then on. When
// nothing comes after them they can be smaller.
func (d *dictionary) begin(raw []byte, last bool) ([]byte, error) {
	d.model = newLZModel()
	var out []byte
	var err error
	if d.dense && last && len(raw) > 0 && len(raw) <= mostMixed {
		var b []byte
		b, err = mixed(raw, d.stop)
		out = believable(append([]byte{methodMix}, b...), raw)
	} else {
		out, err = d.squeeze(raw, d.model)
	}
	d.close()
	d.encoder, d.writer, d.bytes = nil, nil, append([]byte(nil), raw...)
	if len(out) > 0 && out[0] != methodLZ {
		d.model = newLZModel() // as a reader has it
	}
	return out, err
}

// first is the inverse of begin.
func (d *dictionary) first(b []byte, size int64) (err error) {
	d.model = newLZModel()
	d.bytes, err = (&dictionary{stop: d.stop}).expand(b, size, d.model)
	return err
}

// next returns bytes compressed after the dictionary.
func (d *dictionary) next(raw []byte) ([]byte, error) {
	m := *d.model
	return d.squeeze(raw, &m)
}

func (d *dictionary) squeeze(raw []byte, m *lzModel) ([]byte, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if d.dense {
		if d.writer == nil {
			d.writer = newLZWriter(d.bytes)
		}
		b, err := d.writer.pack(m, raw, d.stop)
		return believable(append([]byte{methodLZ}, b...), raw), err
	}
	if d.encoder == nil {
		o := []zstd.EOption{
			zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
			zstd.WithWindowSize(8 << 20), zstd.WithSingleSegment(true),
		}
		if len(d.bytes) > 0 {
			o = append(o, zstd.WithEncoderDictRaw(1, d.bytes))
		}
		var err error
		if d.encoder, err = zstd.NewWriter(nil, o...); err != nil {
			return nil, err
		}
	}
	return believable(d.encoder.EncodeAll(raw, []byte{methodZstd}), raw), nil
}

// believable returns compressed bytes if they are less and a reader takes them.
func believable(out, raw []byte) []byte {
	if len(out) > len(raw) || inflated(int64(len(raw)), len(out)) {
		return append([]byte{methodNone}, raw...)
	}
	return out
}

// after is the inverse of next.
func (d *dictionary) after(b []byte, size int64) ([]byte, error) {
	m := d.model
	if len(b) > 0 && b[0] == methodLZ {
		m = new(lzModel)
		*m = *d.model
	}
	return d.expand(b, size, m)
}

// expand returns the bytes of a size that were squeezed with a model.
func (d *dictionary) expand(b []byte, size int64, m *lzModel) ([]byte, error) {
	if size == 0 && len(b) == 0 {
		return nil, nil
	}
	if len(b) == 0 || size < 0 || size > mostGroup || inflated(size, len(b)) {
		return nil, errForm
	}
	var out []byte
	var err error
	switch b[0] {
	case methodNone:
		out = b[1:]
	case methodZstd:
		out, err = d.expandZstd(b[1:], size)
	case methodLZ:
		out, err = m.unpack(b[1:], d.bytes, int(size), d.stop)
	case methodMix:
		if d.bytes != nil || size > mostMixed {
			return nil, errForm
		}
		out, err = unmixed(b[1:], int(size), d.stop)
	default:
		err = fmt.Errorf("method %d: %w", b[0], errForm)
	}
	if err == nil && int64(len(out)) != size {
		err = errForm
	}
	return out, err
}

func (d *dictionary) expandZstd(b []byte, size int64) ([]byte, error) {
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
		o := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostGroup + 1<<20), zstd.IgnoreChecksum(true)}
		if len(d.bytes) > 0 {
			o = append(o, zstd.WithDecoderDictRaw(1, d.bytes))
		}
		var err error
		if d.decoder, err = zstd.NewReader(nil, o...); err != nil {
			return nil, err
		}
	}
	return d.decoder.DecodeAll(b, make([]byte, 0, size))
}
