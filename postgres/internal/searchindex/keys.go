package searchindex

import "github.com/lineage-store/lineage/lineage/derived"

// The key of a context among the tips is its id. Ids of checkpoints may be equal in several threads.

// checkpointKey is the key of the tip of a checkpoint.
func checkpointKey(name derived.Name) string { return "k" + string(name.Thread[:]) + name.Name }
