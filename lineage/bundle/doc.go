// Package bundle copies threads and contexts between stores, as a file or a stream
// that loses nothing.
//
//	report, err := bundle.Write(ctx, store, w, bundle.WriteOptions{Threads: ids})
//	report, err := bundle.Import(ctx, other, r, bundle.ImportOptions{})
//
// # What is in a bundle
//
// The threads and contexts that were chosen, or all, with branches, checkpoints,
// summaries, reflogs and span sets, the spans that any of these refers to or that a
// chosen thread keeps, with their content and what that was derived from. History that is shared with
// another thread comes along as spans, not as that thread. Of content that was
// erased there is the description, never a byte. Ids and times are kept.
//
// A bundle is a function of what it holds: the same threads give the same bytes,
// and a store that was made from a bundle gives that bundle again. The bytes also
// depend on the compressor, which another version of the program may bring. Content
// that was erased and then said again is described as the first in the bundle to use
// it has it; a store that got it with an earlier bundle keeps the description of that.
//
// # Leaving out what is known
//
// An [Inventory] lists what a store has. A bundle that is written against one leaves
// out the content and spans listed there, so that keeping a second store up to date
// costs what is new. Importing it where something that was left out is missing is a
// *MissingError, and nothing is changed.
//
// # Importing
//
// [Import] reads a bundle twice. First every byte is checked, so that one that is
// damaged, cut short or contradicts itself, or was made for another store, is
// refused before anything is applied. A reader that cannot go back is copied to a
// temporary file for that. Then it is applied in pieces: content, the spans that use it, the
// contexts that stand there, and names last, thread by thread. An import that was
// interrupted leaves a sound store, and importing again goes on where it ended.
//
// What the store has is recognised by ids and digests and left alone: importing a
// bundle again makes no commit. A context that the bundle has further is moved on, one
// that the store has further stays. Where both went on from the same place the
// histories stay apart: spans of the bundle that would take the place of others go
// into a run of their own, and the context is in conflict: see [OnConflict].
//
// Contexts and branches that were deleted here come back with a bundle that has
// them. Content that was erased here does not come back with messages that are here:
// only messages that are new bring it, as they do when they are said. Content that was
// erased there stays here.
package bundle
