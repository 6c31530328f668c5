package projected

import (
	"github.com/lineage-store/lineage/structure"
)

// MaxBody is the maximum size of a projected body. Larger ones stay in the store, because they are
// unsuitable for databases.
const MaxBody = 64 << 20

// IsErased reports whether the body of a block was erased.
func IsErased(b *structure.Block) bool { return b.Body == nil && b.Tree.Size == 0 }
