// Package importer imports archives of other programs into a store, and follows session files while they grow. The example
// of [Import] shows how.
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
// branch; an older one changes none of these. A title that others have set stays, and so do members
// of the metadata that the archive does not state. An input of a format that states less than another
// one of the same program (archive.Format.Bare) changes nothing that the other has stated. A message
// with changed content, metadata or time is a new version and begins a branch; its id finds the
// version of the later export. Changes that others made to the thread are kept, also those made
// during the import.
//
// A conversation without an id gets one derived from its whole content, including times and
// metadata, and from the number of equal ones before it in the file.
//
// A damaged item is skipped and reported with its position; the rest is imported.
package importer
