package backend

import "context"

// Packer is implemented by engines that can compress the parts of the journal that are no
// longer written to.
type Packer interface {
	// Pack compresses the journal. Its context can end it at any point; finished packs stay.
	// Readers and writers continue meanwhile.
	Pack(ctx context.Context, o PackOptions) (PackReport, error)
}

// PackOptions say what is packed.
type PackOptions struct {
	// All packs everything up to the latest commit, and merges small packs. Without it, only
	// whole files that are not packed yet are packed.
	All bool
	// Dense compresses as much as possible, for archives. Writing takes some two seconds for a
	// megabyte of text, and reading a message expands the chapter that it is in: up to 2 MiB
	// compressed, about 35 ms for each.
	Dense bool
	// Progress, when not nil, is called with the number of bytes of the journal that were
	// read.
	Progress func(done, total int64)
}

// PackReport says what was packed.
type PackReport struct {
	// Files is the number of files that were written, Commits the number of commits in them.
	Files   int
	Commits uint64
	// Before and After are the sizes in bytes of journal and index.
	Before, After int64
}
