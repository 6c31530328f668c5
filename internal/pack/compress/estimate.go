package compress

import "github.com/klauspost/compress/zstd"

// Estimate estimates the compressed size of bytes before they are compressed for real. It
// rather overestimates.
type Estimate struct {
	Size    int
	encoder *zstd.Encoder
}

// Write counts the output of the encoder.
func (e *Estimate) Write(b []byte) (int, error) {
	e.Size += len(b)
	return len(b), nil
}

func (e *Estimate) Add(b []byte) {
	if e.encoder == nil {
		// The options are valid, and Write never fails.
		e.encoder, _ = zstd.NewWriter(e, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithWindowSize(16<<20), zstd.WithLowerEncoderMem(true))
	}
	_, _ = e.encoder.Write(b)
}

// Reset starts over.
func (e *Estimate) Reset() {
	if e.Size = 0; e.encoder != nil {
		e.encoder.Reset(e)
	}
}

func (e *Estimate) Close() {
	if e.encoder != nil {
		e.encoder.Close()
		e.encoder = nil
	}
}
