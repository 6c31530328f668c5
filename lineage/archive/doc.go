// Package archive reads the archives of other programs into a store: exports of
// chat services, sessions of coding agents, files for training models.
//
//	report, err := archive.Import(ctx, store, archive.Path("export.zip"), nil)
//
// A source is a file, a folder or a stream; gzip, zstd and zip are undone on the
// way, and the format of each file is told from its content. Reading streams: an
// archive may be larger than memory, and one conversation or line at a time is
// held, up to Limits.Item.
//
// # What becomes of a conversation
//
// A thread, under the conversation's id as source id, with its title, user and
// times. What else the archive says of it is the thread's metadata; under
// "_archive" there stands what the next import needs to tell what is new. A
// message is a span. Its body is the object that the archive has for the message, byte
// for byte, or text where the archive has a text. Its id becomes the source id (see
// lineage.Thread.Find), model and user its origin, and what stands around the object its
// metadata. Files whose text came along are assets in the same span.
//
// Branches become branches: the one that the archive calls current is the active
// one, others have the archive's name or one like "main-v2". What a subagent did,
// and what an archive has beside messages (events, snapshots), become contexts
// without a name whose metadata says {"aside": "agent …"} or {"aside": "log"};
// they are children of the main one.
//
// # What is stored once
//
// Content is, as always. Messages are shared only where nothing that a reader can see
// of them differs, from the first message of the history on: content, role, names,
// id, time, model, user and metadata. So branches of one conversation share what they
// begin with. A conversation shares messages with another one only if the archive
// says that the one was forked or resumed from the other, and never with one of
// another user.
//
// # Importing again
//
// What is in the store already is recognised and not added again: importing an
// archive twice makes no commit. A newer export adds its new messages, moves the
// branches that grew, and brings a changed title, metadata and current branch; an
// older one changes none of these. A message that the newer export has with other
// metadata or another time is another message: it begins a branch. What others did to
// the thread meanwhile stays.
//
// A conversation without an id gets one that is made of all that the archive says of
// it, times and metadata included, and of how many equal ones the file had before.
//
// # Damage and hostility
//
// An item that cannot be read is left out and reported with its position, and the
// rest is imported. Archives are read as if an adversary had made them: sizes,
// depths, ratios of decompression and numbers of files have limits, links and
// paths that leave a folder are refused, parents that are missing or go in circles
// are mended and reported, and text that is not Unicode is kept as the bytes that
// it is.
//
// # Formats
//
// A Format is a value: a name, a detector and a reader. Formats lists those of this
// package; others are added by handing Import a longer list.
package archive
