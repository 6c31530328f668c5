package postgres

import (
	"fmt"

	"github.com/lineage-store/lineage/lineage/backend"
)

// migrations create the tables, each from the version before it. A constraint is added by a statement of its own, with a name:
// servers that distribute tables refuse others.
var migrations = [][]string{{
	`CREATE TABLE lineage_store (
  store bytea PRIMARY KEY CHECK (octet_length(store) = 16),
  name text NOT NULL,
  identity bytea NOT NULL CHECK (octet_length(identity) = 16),
  created_at timestamptz NOT NULL DEFAULT now()
)`,
	`CREATE TABLE lineage_log (
  store bytea NOT NULL,
  n bigint NOT NULL CHECK (n > 0),
  count bigint NOT NULL CHECK (count > 0),
  id bigint NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (store, n)
)`,
	// Data are compressed when they come. Where a table is distributed this is not possible, nor necessary.
	`DO $$ BEGIN ALTER TABLE lineage_log ALTER COLUMN data SET STORAGE EXTERNAL; EXCEPTION WHEN feature_not_supported THEN NULL; END $$`,
	// A synced write makes all earlier writes durable. Its row has no other meaning.
	`CREATE TABLE lineage_durable (
  store bytea PRIMARY KEY,
  n bigint NOT NULL
) WITH (fillfactor = 50)`,
}, {
	// Each collection changes the epoch of a store.
	`ALTER TABLE lineage_store ADD COLUMN epoch bigint NOT NULL DEFAULT 0`,
	// A collection has a row from its decision until all rows of the log are rewritten.
	`CREATE TABLE lineage_collection (
  store bytea PRIMARY KEY,
  epoch bigint NOT NULL,
  live bytea NOT NULL
)`,
}, {
	// The entries that answer reads, in versions. Its age is minus the number of the last commit of the row of the log
	// that wrote it, so that the newest version sorts first. A version without a value is a deletion.
	`CREATE TABLE lineage_entry (
  store bytea NOT NULL,
  epoch bigint NOT NULL,
  key bytea NOT NULL,
  age bigint NOT NULL CHECK (age < 0),
  value bytea,
  PRIMARY KEY (store, epoch, key, age)
)`,
	// The last row of the log that the entries of an epoch account for. Versions that were replaced up to the horizon are gone.
	`CREATE TABLE lineage_head (
  store bytea NOT NULL,
  epoch bigint NOT NULL,
  first bigint NOT NULL,
  n bigint NOT NULL,
  id bigint NOT NULL,
  counts bytea NOT NULL,
  horizon bigint NOT NULL DEFAULT 0,
  forgets bigint NOT NULL DEFAULT 0, -- how often sessions were forgotten
  PRIMARY KEY (store, epoch)
) WITH (fillfactor = 50)`,
	// The keys whose earlier versions a row of the log replaced.
	`CREATE TABLE lineage_former (
  store bytea NOT NULL,
  epoch bigint NOT NULL,
  n bigint NOT NULL,
  part integer NOT NULL,
  keys bytea[] NOT NULL,
  at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (store, epoch, n, part)
)`,
	// A program of an earlier version that still runs would add rows without entries. It does not name this column.
	`ALTER TABLE lineage_log ADD COLUMN entries integer NOT NULL DEFAULT 0`,
	`ALTER TABLE lineage_log ALTER COLUMN entries DROP DEFAULT`,
	`ALTER TABLE lineage_collection ADD COLUMN entries boolean NOT NULL DEFAULT true`,
	`ALTER TABLE lineage_collection ALTER COLUMN entries DROP DEFAULT`,
}, {
	// Entries of sessions, and keys with texts, have another form: they are made from the log again.
	`TRUNCATE lineage_entry, lineage_former, lineage_head`,
	// Unfolded changes: those of a row of the log that no version of an entry has yet. Only rows after the last fold count.
	`ALTER TABLE lineage_former ADD COLUMN changes bytea`,
	// Programs of an earlier version that still run do not name this column, and can write no more. They name the other
	// one, and can read no more: they would not see the changes.
	`ALTER TABLE lineage_head ADD COLUMN folded bigint NOT NULL`,
	`ALTER TABLE lineage_head RENAME COLUMN counts TO totals`,
	// They can prune no more: they would remove the changes.
	`ALTER TABLE lineage_former RENAME COLUMN at TO made_at`,
}, {
	// The index for searches: see package searchindex.
	`CREATE TABLE lineage_search (
  store bytea PRIMARY KEY,
  format integer NOT NULL,
  epoch bigint NOT NULL,
  clearing boolean NOT NULL DEFAULT false,
  identity bytea NOT NULL DEFAULT '',
  number bigint NOT NULL DEFAULT 0,
  id bigint NOT NULL DEFAULT 0,
  seen_number bigint NOT NULL DEFAULT 0,
  seen_id bigint NOT NULL DEFAULT 0,
  turn bigint NOT NULL DEFAULT 0,
  stamp bigint NOT NULL,
  generation bigint NOT NULL,
  owner bigint NOT NULL DEFAULT 0,
  spans bigint NOT NULL DEFAULT 0,
  runs bigint NOT NULL DEFAULT 0,
  threads bigint NOT NULL DEFAULT 0,
  terms bigint NOT NULL,
  erased boolean NOT NULL DEFAULT false,
  busy_until timestamptz
) WITH (fillfactor = 50)`,
	`CREATE TABLE lineage_search_text (
  store bytea NOT NULL,
  id bytea NOT NULL,
  words integer[],
  PRIMARY KEY (store, id)
)`,
	`CREATE INDEX lineage_search_text_words ON lineage_search_text USING gin (words)`,
	`CREATE TABLE lineage_search_term (
  store bytea NOT NULL,
  term bytea NOT NULL,
  number integer NOT NULL,
  PRIMARY KEY (store, term)
)`,
	`CREATE TABLE lineage_search_usage (
  store bytea NOT NULL,
  run bigint NOT NULL,
  seq bigint NOT NULL,
  head integer NOT NULL,
  kind integer NOT NULL,
  text bytea NOT NULL,
  role bytea NOT NULL,
  PRIMARY KEY (store, run, seq, head, text)
)`,
	`CREATE INDEX lineage_search_usage_text ON lineage_search_usage (store, text)`,
	// The step reached is the last one that something sees.
	`CREATE TABLE lineage_search_run (
  store bytea NOT NULL,
  number bigint NOT NULL,
  id bytea NOT NULL,
  parent bigint,
  after bigint NOT NULL,
  thread bytea,
  last bigint NOT NULL,
  reached bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (store, number),
  UNIQUE (store, id)
)`,
	`CREATE INDEX lineage_search_run_parent ON lineage_search_run (store, parent, after) WHERE parent IS NOT NULL`,
	`CREATE INDEX lineage_search_run_thread ON lineage_search_run (store, thread) WHERE thread IS NOT NULL`,
	`CREATE TABLE lineage_search_tip (
  store bytea NOT NULL,
  id bytea NOT NULL,
  thread bytea,
  run bigint NOT NULL,
  seq bigint NOT NULL,
  of bytea,
  PRIMARY KEY (store, id)
)`,
	`CREATE INDEX lineage_search_tip_run ON lineage_search_tip (store, run, seq)`,
	`CREATE INDEX lineage_search_tip_thread ON lineage_search_tip (store, thread) WHERE thread IS NOT NULL`,
	`CREATE INDEX lineage_search_tip_of ON lineage_search_tip (store, of) WHERE of IS NOT NULL`,
	`CREATE TABLE lineage_search_thread (
  store bytea NOT NULL,
  id bytea NOT NULL,
  number bigint NOT NULL,
  username bytea NOT NULL,
  keeps boolean NOT NULL,
  PRIMARY KEY (store, id)
)`,
	`CREATE INDEX lineage_search_thread_user ON lineage_search_thread (store, username)`,
}, {
	// Concurrent synced writes change different rows.
	`ALTER TABLE lineage_durable ADD COLUMN slot integer NOT NULL DEFAULT 0`,
	`ALTER TABLE lineage_durable DROP CONSTRAINT lineage_durable_pkey`,
	`ALTER TABLE lineage_durable ADD CONSTRAINT lineage_durable_pkey PRIMARY KEY (store, slot)`,
}, {
	// Entries that find messages by source ids have another form: all entries are made from the log again.
	`TRUNCATE lineage_entry, lineage_former, lineage_head`,
	// Programs of an earlier version that still run name this column, and can neither write nor read any more.
	`ALTER TABLE lineage_head RENAME COLUMN totals TO sums`,
}, {
	`ALTER TABLE lineage_search RENAME COLUMN turn TO version`,
}, {
	// Entries of spans are in groups: all entries are made from the log again.
	`TRUNCATE lineage_entry, lineage_former, lineage_head`,
	// Columns of any size come first, so that fewer bytes of a row are empty.
	`ALTER TABLE lineage_entry DROP COLUMN epoch, DROP COLUMN age`,
	`ALTER TABLE lineage_entry ADD COLUMN epoch bigint NOT NULL, ADD COLUMN age bigint NOT NULL`,
	`ALTER TABLE lineage_entry ADD CONSTRAINT lineage_entry_age_check CHECK (age < 0)`,
	`ALTER TABLE lineage_entry ADD CONSTRAINT lineage_entry_pkey PRIMARY KEY (store, epoch, key, age)`,
	// unfolded is the number of changes, one per row of the log, that are not folded. Later changes are stored in the places of folded ones.
	`ALTER TABLE lineage_head ADD COLUMN unfolded integer NOT NULL`,
	`ALTER TABLE lineage_former SET (fillfactor = 50)`,
	// As before, programs of an earlier version can neither write nor read any more.
	`ALTER TABLE lineage_head RENAME COLUMN sums TO tally`,
}, {
	// Keys with texts and filters of lists are shorter: all entries are made from the log again.
	`TRUNCATE lineage_entry, lineage_former, lineage_head`,
	// As before, programs of an earlier version can neither write nor read any more.
	`ALTER TABLE lineage_head RENAME COLUMN tally TO numbers`,
}}

func newerTables(version int) error {
	return fmt.Errorf("the tables have version %d, this program knows up to %d: %w", version, len(migrations), backend.ErrNewerFormat)
}
