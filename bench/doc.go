// Package bench measures the cost of forking, extending, reading and deduplicating in this store
// and in others, interleaved in one run.
//
// All figures are measured in the same way: the systems do the same work, round after round, in a
// random order, so that noise affects all alike and none always follows the same one. A row is the
// median of its rounds, with quartiles; a ratio is the median of the rounds' ratios. Data is
// generated from a fixed seed. Quartiles that are far apart mean noise.
//
// Each system has a durability for acknowledged changes and is only compared with systems of the
// same one: full survives power loss, normal survives the end of the process.
package bench
