// Package archive reads archives of other programs: exports of chat services, sessions of coding agents, training data.
//
// A source is a file, a folder or a stream. gzip, zstd and zip are decompressed, and the format of
// each file is detected from its content. Reading is streamed: an archive may be larger than
// memory. The text of one conversation or line is held at a time, up to Limits.Item.
//
// A Format is a value: a name, a detector and a reader of an Input, which yields Conversations. Package formats lists those
// there are, and package importer imports archives into a store.
//
// # Damaged and hostile archives
//
// A damaged item is skipped and reported with its position; the rest is imported. Archives are
// treated as hostile: sizes, depths, compression ratios and numbers of files are limited; links and
// paths outside of a folder are refused; missing and circular parents are repaired and reported;
// text that is not Unicode is kept byte for byte.
package archive
