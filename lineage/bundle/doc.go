// Package bundle copies threads and contexts between stores without loss, as a file or a
// stream.
//
//	report, err := bundle.Write(ctx, store, w, bundle.WriteOptions{Threads: ids})
//	report, err := bundle.Import(ctx, other, r, bundle.ImportOptions{})
//
// # What is in a bundle
//
// The chosen threads and contexts, or all, with their branches, checkpoints, summaries, reflogs
// and span sets; the spans that any of these refers to or that a chosen thread keeps; and the
// content of these spans with what it was derived from. History that is shared with another
// thread is included as spans, without that thread. Of erased content only the description is
// included. Ids and times are kept.
//
// The same threads give the same bytes, and a store that was created from a bundle gives the same
// bundle again, unless another version of the program brings another compressor. Content that was
// erased and then stored again is described as its first use in the bundle describes it; a store
// that has it from an earlier bundle keeps the earlier description.
//
// # Leaving out what is known
//
// An [Inventory] lists what a store has. A bundle that is written against an inventory leaves
// out the content and spans in it, so that the cost of keeping a second store up to date is that of
// what is new. If something that was left out is missing, the import changes nothing and returns a
// *MissingError.
//
// # Importing
//
// [Import] reads a bundle twice. First it checks every byte, so that a bundle that is damaged,
// cut short, contradictory, or made for another store is refused before anything is applied. A
// reader that cannot seek is copied to a temporary file. Then the bundle is applied in small
// commits, thread by thread: content, the spans that use it, contexts, and names last. An import
// that was interrupted leaves a sound store, and can be repeated.
//
// What the store has is recognised by ids and digests and not changed: importing a bundle again
// makes no commit. A context that has advanced in the bundle is advanced; one that has advanced in
// the store is not changed. If both have advanced, spans of the bundle that would replace others go
// into a run of their own, and the context is in conflict: see [OnConflict].
//
// Contexts and branches that were deleted here are created again by a bundle that has them.
// Content that was erased here is stored again only if new messages use it. Content that was
// erased in the other store is kept here.
package bundle
