package backend

import "context"

// Packer is implemented by engines that can keep what is no longer written to in
// less room.
type Packer interface {
	// Pack does so. It can be ended at any point by its context; what was packed
	// until then stays. Readers and writers go on meanwhile.
	Pack(ctx context.Context, o PackOptions) (PackReport, error)
}

// PackOptions say what is packed.
type PackOptions struct {
	// All packs everything up to the latest commit, and small packs anew together.
	// Without it, only what fills whole files and is not packed yet.
	All bool
	// Dense packs as small as possible, for archives. Writing takes longer, some two
	// seconds for a megabyte of text, and reading long histories too. An archive of up
	// to four megabytes of distinct content is smaller still, and is expanded as a
	// whole, half a second for a megabyte, when anything of it is first read.
	Dense bool
	// Progress, when not nil, is told how much of the journal was read, in bytes.
	Progress func(done, total int64)
}

// PackReport tells what packing did.
type PackReport struct {
	// Files is how many files were written, Commits how many commits they hold.
	Files   int
	Commits uint64
	// Before and After are the sizes in bytes of journal and index.
	Before, After int64
}
