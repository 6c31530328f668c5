package pack

import "github.com/klauspost/compress/zstd"

// estimate estimates the compressed size of bytes before they are compressed for real. It
// rather overestimates.
type estimate struct {
	size    int
	encoder *zstd.Encoder
}

// Write counts the output of the encoder.
func (e *estimate) Write(b []byte) (int, error) {
	e.size += len(b)
	return len(b), nil
}

func (e *estimate) add(b []byte) {
	if e.encoder == nil {
		// The options are valid, and Write never fails.
		e.encoder, _ = zstd.NewWriter(e, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(16<<20))
	}
	_, _ = e.encoder.Write(b)
}

// reset starts over.
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
