package usage

import "github.com/lineage-store/lineage/internal/derivedfile"

// format is the version of the tables and of what is read of messages. It is raised with each change of either: an index of an older
// version is rebuilt.
const format = 9

// quarter is the time resolution of the totals, in milliseconds.
const quarter = 15 * 60 * 1000

// schema creates the tables.
//
// "sightings" are the answers that spans of a run state: each row has those of some spans that follow each other, from step "first"
// to "last", as appendSightings writes them. "keys" lead from the keys by which copies of an answer are known to the numbers of
// the rows that have them: each row has those from hash "start" to the start of the next, as storeKeys writes them.
// "counters" are the counters of sessions that spans of a run state, from step "first" on, as appendCounters writes them.
// "totals" are sums of the answers that are seen, each counted once: by the run in which it is counted, the quarter of an hour
// (-1 for an unknown time), the model, how many of "starts" its input is beyond, and the kinds of tokens that are known.
// "about" is what reports say of threads that exist, "contexts" and "branches" lead from runs to the branches that see them.
const schema = `
CREATE TABLE models (number INTEGER PRIMARY KEY, name TEXT NOT NULL, provider TEXT NOT NULL, tier TEXT NOT NULL, UNIQUE (name, provider, tier));
CREATE TABLE sightings (number INTEGER PRIMARY KEY, run INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, answers BLOB NOT NULL);
CREATE INDEX sightings_of ON sightings (run, last);
CREATE TABLE keys (start INTEGER PRIMARY KEY, sightings BLOB NOT NULL);
CREATE TABLE counters (run INTEGER NOT NULL, first INTEGER NOT NULL, totals BLOB NOT NULL, PRIMARY KEY (run, first)) WITHOUT ROWID;
CREATE TABLE totals (
	run INTEGER NOT NULL, quarter INTEGER NOT NULL, model INTEGER NOT NULL, bracket INTEGER NOT NULL, known INTEGER NOT NULL,
	answers INTEGER NOT NULL, requests INTEGER NOT NULL, covers INTEGER NOT NULL, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, t2 INTEGER NOT NULL,
	t3 INTEGER NOT NULL, t4 INTEGER NOT NULL, t5 INTEGER NOT NULL, cost INTEGER NOT NULL, costs INTEGER NOT NULL,
	PRIMARY KEY (run, quarter, model, bracket, known)
) WITHOUT ROWID;
CREATE TABLE starts (start INTEGER PRIMARY KEY);
CREATE TABLE about (thread INTEGER PRIMARY KEY, id BLOB NOT NULL, agent TEXT NOT NULL, project TEXT NOT NULL, git_branch TEXT NOT NULL, machine TEXT NOT NULL);
CREATE TABLE contexts (id BLOB PRIMARY KEY, thread INTEGER NOT NULL, parent BLOB NOT NULL, created INTEGER NOT NULL, aside TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX contexts_of ON contexts (thread);
CREATE TABLE branches (thread BLOB NOT NULL, name TEXT NOT NULL, context BLOB NOT NULL, made INTEGER NOT NULL, PRIMARY KEY (thread, name)) WITHOUT ROWID;
CREATE INDEX branches_of ON branches (context);
`

var each = derivedfile.Each
