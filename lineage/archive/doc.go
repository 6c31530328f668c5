// Package archive imports archives of other programs into a store: exports of chat services,
// sessions of coding agents, training data. The example of [Import] shows how.
//
// A source is a file, a folder or a stream. gzip, zstd and zip are decompressed, and the format of
// each file is detected from its content. Reading is streamed: an archive may be larger than
// memory. One conversation or line is held at a time, up to Limits.Item.
//
// # Conversations and threads
//
// A conversation becomes a thread whose source id is the conversation's id, with its title, user
// and times. Other fields of the archive become the thread's metadata; key "_archive" holds what
// the next import needs to find changes. A message becomes a span. Its body is the archive's object
// for the message, byte for byte, or a text if the archive has a text. Its id becomes the source id
// (see lineage.Thread.Find), model and user become the origin, and members around the object the
// metadata. Files with an included text are assets in the same span.
//
// Branches become branches: the archive's current branch is active, others keep their names or get
// one like "main-v2". Subagents, and data other than messages (events, snapshots), become contexts
// without a name whose metadata is {"aside": "agent …"} or {"aside": "log"}; they are children of
// the main context.
//
// # Deduplication
//
// Content is always stored once. Messages are shared only if everything visible is equal, from the
// first message of the history on: content, role, names, id, time, model, user and metadata. So
// branches of a conversation share their common start. Different conversations share messages only
// if the archive says that one was forked or resumed from the other, and only for the same user.
//
// # Importing again
//
// Stored messages are recognised: importing an archive twice makes no commit. A newer export adds
// new messages, advances grown branches, and updates changed titles, metadata and the current
// branch; an older one changes none of these. A message with changed content, metadata or time is a
// new version and begins a branch; its id finds the version of the later export. Changes that others
// made to the thread are kept, also those made during the import.
//
// A conversation without an id gets one derived from its whole content, including times and
// metadata, and from the number of equal ones before it in the file.
//
// # Damaged and hostile archives
//
// A damaged item is skipped and reported with its position; the rest is imported. Archives are
// treated as hostile: sizes, depths, compression ratios and numbers of files are limited; links and
// paths outside of a folder are refused; missing and circular parents are repaired and reported;
// text that is not Unicode is kept byte for byte.
//
// # Formats
//
// A Format is a value: a name, a detector and a reader. Formats lists those of this package; to add
// others, pass Import a longer list.
package archive
