// Package bench measures what forking, extending, reading and deduplicating cost,
// in this store and in others, side by side in one run.
//
// Every figure is taken the same way: those compared do the same work in turn,
// round after round, in an order drawn for each, so that a noisy machine disturbs
// all alike and none always comes after the same. A row is the median of its
// rounds, with the quartiles beside it; a ratio is the median of the rounds'
// ratios. Work is drawn from a fixed seed. A row whose quartiles are far apart says
// that it is noisy.
//
// Each system says how durable what it acknowledged is, and is only compared with
// systems that promise the same: full survives power loss, normal the death of
// the process.
package bench
