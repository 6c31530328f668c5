// Package prefetch tells the processor which memory will be looked at soon, so that it is
// there by then.
package prefetch
