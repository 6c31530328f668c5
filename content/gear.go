package content

// gearSeed is "Lineage1" in ASCII, an arbitrary value.
const gearSeed = 0x4c696e6561676531

// gear has, for each byte value, the random number that it adds to the rolling
// hash. It determines the cuts and must not change.
var gear = newGear(gearSeed)

// newGear fills a table with the successive outputs of SplitMix64.
func newGear(state uint64) (table [256]uint64) {
	for i := range table {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		table[i] = z ^ z>>31
	}
	return table
}
