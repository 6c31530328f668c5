package pack

import "github.com/klauspost/compress/zstd"

// estimate tells about how small bytes get when they are compressed together, before that
// is done. It is rather too large.
type estimate struct {
	size    int
	encoder *zstd.Encoder
}

// Write counts what the encoder writes.
func (e *estimate) Write(b []byte) (int, error) {
	e.size += len(b)
	return len(b), nil
}

func (e *estimate) add(b []byte) {
	if e.encoder == nil {
		// The options are right, and nothing that is written fails.
		e.encoder, _ = zstd.NewWriter(e, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(16<<20))
	}
	_, _ = e.encoder.Write(b)
}

// reset begins with other bytes.
func (e *estimate) reset() {
	if e.size = 0; e.encoder != nil {
		e.encoder.Reset(e)
	}
}

func (e *estimate) close() {
	if e.encoder != nil {
		e.encoder.Close()
		e.encoder = nil
	}
}
