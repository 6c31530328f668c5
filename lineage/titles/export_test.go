package titles

// SetMostBehind changes mostBehind, and returns what it was.
func SetMostBehind(n uint64) uint64 {
	was := mostBehind
	mostBehind = n
	return was
}

// BeforeAdding sets what is called before titles are added.
func (x *Index) BeforeAdding(do func()) { x.adding = do }
