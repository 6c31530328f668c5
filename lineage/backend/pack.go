package backend

import "context"

// Packer is implemented by engines that can compress the sealed parts of the journal.
type Packer interface {
	// Pack compresses the journal. It can be canceled at any point; finished packs stay.
	// Readers and writers continue meanwhile.
	Pack(ctx context.Context, o PackOptions) (PackReport, error)
}

// PackOptions configure packing.
type PackOptions struct {
	// All packs everything up to the latest commit, and merges packs until each is several times
	// larger than the next. Otherwise only whole unpacked files are packed, and packs merge
	// where that costs little.
	All bool
	// Dense compresses as much as possible, for archives, and packs that are not dense once
	// more. Writing takes about two seconds per megabyte of text, and reading a message
	// decompresses its chapter: up to 2 MiB compressed, about 35 ms per MiB.
	Dense bool
	// Progress, if not nil, is called with the bytes of the journal that were read.
	Progress func(done, total int64)
}

// PackReport is the result of packing.
type PackReport struct {
	// Files is the number of files written, Commits the number of commits in them.
	Files   int    `json:"files"`
	Commits uint64 `json:"commits"`
	// Before and After are the sizes in bytes of journal and index.
	Before int64 `json:"bytes_before"`
	After  int64 `json:"bytes_after"`
	// Fast is the size of the packs that are not dense.
	Fast int64 `json:"bytes_not_dense"`
}
